// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <charconv>
#include <sstream>

#include "error.h"

namespace fake_plugin {
namespace {

struct ElementType {
  const char* name;
  PJRT_Buffer_Type type;
  std::size_t itemsize;
  bool has_arithmetic;
};

constexpr ElementType kElementTypes[] = {
    {"PRED", PJRT_Buffer_Type_PRED, 1, true},
    {"S8", PJRT_Buffer_Type_S8, 1, true},
    {"S16", PJRT_Buffer_Type_S16, 2, true},
    {"S32", PJRT_Buffer_Type_S32, 4, true},
    {"S64", PJRT_Buffer_Type_S64, 8, true},
    {"U8", PJRT_Buffer_Type_U8, 1, true},
    {"U16", PJRT_Buffer_Type_U16, 2, true},
    {"U32", PJRT_Buffer_Type_U32, 4, true},
    {"U64", PJRT_Buffer_Type_U64, 8, true},
    {"F16", PJRT_Buffer_Type_F16, 2, false},
    {"F32", PJRT_Buffer_Type_F32, 4, true},
    {"F64", PJRT_Buffer_Type_F64, 8, true},
    {"BF16", PJRT_Buffer_Type_BF16, 2, false},
    {"C64", PJRT_Buffer_Type_C64, 8, true},
    {"C128", PJRT_Buffer_Type_C128, 16, true},
    {"F8E5M2", PJRT_Buffer_Type_F8E5M2, 1, false},
    {"F8E4M3FN", PJRT_Buffer_Type_F8E4M3FN, 1, false},
    {"F8E4M3B11FNUZ", PJRT_Buffer_Type_F8E4M3B11FNUZ, 1, false},
    {"F8E5M2FNUZ", PJRT_Buffer_Type_F8E5M2FNUZ, 1, false},
    {"F8E4M3FNUZ", PJRT_Buffer_Type_F8E4M3FNUZ, 1, false},
    {"F8E4M3", PJRT_Buffer_Type_F8E4M3, 1, false},
    {"F8E3M4", PJRT_Buffer_Type_F8E3M4, 1, false},
    {"F8E8M0FNU", PJRT_Buffer_Type_F8E8M0FNU, 1, false},
};

const ElementType* find(PJRT_Buffer_Type type) noexcept {
  for (const ElementType& entry : kElementTypes) {
    if (entry.type == type) {
      return &entry;
    }
  }
  return nullptr;
}

// Parses "F32[2,3]".
bool parse_type(const std::string& text, ArrayType& out) {
  const std::size_t bracket = text.find('[');
  if (bracket == std::string::npos || text.back() != ']') {
    return false;
  }
  out.element_type = element_type(text.substr(0, bracket));
  if (out.element_type == PJRT_Buffer_Type_INVALID) {
    return false;
  }
  std::istringstream dimensions(text.substr(bracket + 1, text.size() - bracket - 2));
  for (std::string dimension; std::getline(dimensions, dimension, ',');) {
    std::int64_t size = -1;
    std::from_chars(dimension.data(), dimension.data() + dimension.size(), size);
    if (size < 0) {
      return false;
    }
    out.dimensions.push_back(size);
  }
  return out.dimensions.size() <= kMaxRank;
}

bool parse_operation(std::istringstream& line, Output& out) {
  std::string name;
  line >> name;
  if (name == "copy" || name == "sum") {
    out.operation = name == "copy" ? Operation::kCopy : Operation::kSum;
    line >> out.left;
  } else if (name == "scale") {
    out.operation = Operation::kScale;
    line >> out.left >> out.number;
  } else if (name == "add") {
    out.operation = Operation::kAdd;
    line >> out.left >> out.right;
  } else if (name == "iota") {
    out.operation = Operation::kIota;
  } else if (name == "fill") {
    out.operation = Operation::kFill;
    line >> out.number;
  } else if (name == "fail") {
    out.operation = Operation::kFail;
    std::string code;
    line >> code >> std::ws;
    std::string message;
    std::getline(line, message);
    out.failure = {error_code(code.c_str()), keep_text(message)};
    return out.failure.code != PJRT_Error_Code_UNKNOWN;
  } else {
    return false;
  }
  if (line.fail()) {
    return false;
  }
  std::string word;
  if (!(line >> word)) {
    return true;
  }
  return word == "into" && static_cast<bool>(line >> out.into.emplace());
}

bool fits_destination(const Program& program, const Output& output) {
  return *output.into < program.inputs.size() &&
         program.inputs[*output.into].element_type == output.type.element_type &&
         program.inputs[*output.into].dimensions == output.type.dimensions;
}

// Returns whether the operation's inputs exist and have the types that it needs.
bool matches(const Program& program, const Output& output) {
  const bool reads_left = output.operation <= Operation::kSum;
  const bool reads_right = output.operation == Operation::kAdd;
  const auto fits = [&](std::size_t index) {
    return index < program.inputs.size() &&
           program.inputs[index].element_type == output.type.element_type &&
           (output.operation == Operation::kSum
                ? output.type.num_elements() == 1
                : program.inputs[index].num_elements() == output.type.num_elements());
  };
  const bool bytewise =
      output.operation == Operation::kCopy || output.operation == Operation::kFail;
  return (bytewise || find(output.type.element_type)->has_arithmetic) &&
         (!reads_left || fits(output.left)) && (!reads_right || fits(output.right)) &&
         (!output.into || fits_destination(program, output));
}

}  // namespace

std::size_t ArrayType::num_elements() const noexcept {
  std::size_t result = 1;
  for (const std::int64_t dimension : dimensions) {
    result *= static_cast<std::size_t>(dimension);
  }
  return result;
}

std::size_t ArrayType::size_bytes() const noexcept {
  return num_elements() * itemsize(element_type);
}

std::size_t itemsize(PJRT_Buffer_Type element_type) noexcept {
  const ElementType* found = find(element_type);
  return found == nullptr ? 0 : found->itemsize;
}

PJRT_Buffer_Type element_type(std::string_view name) noexcept {
  for (const ElementType& entry : kElementTypes) {
    if (name == entry.name) {
      return entry.type;
    }
  }
  return PJRT_Buffer_Type_INVALID;
}

std::string Program::parse(std::string_view text) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string keyword;
    std::string type;
    if (!(words >> keyword >> type) || keyword.front() == '#') {
      continue;
    }
    ArrayType array;
    if (!parse_type(type, array)) {
      return "not an array type: " + type;
    }
    if (keyword == "input") {
      inputs.push_back(array);
    } else if (keyword == "output") {
      Output output;
      output.type = array;
      if (!parse_operation(words, output) || !matches(*this, output)) {
        return "not a possible output: " + line;
      }
      outputs.push_back(std::move(output));
    } else {
      return "unknown statement: " + line;
    }
  }
  return {};
}

}  // namespace fake_plugin

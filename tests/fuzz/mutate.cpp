// SPDX-License-Identifier: Apache-2.0
#include "mutate.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/wire.h"
#include "input.h"

namespace cyxla::fuzz {
namespace {

constexpr int kMaxDepth = 12;
constexpr std::string_view kElfMagic =
    "\x7f"
    "ELF";

template <typename Struct>
Struct load(const std::string& bytes, std::size_t offset) {
  Struct value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

bool fits(const std::string& bytes, std::size_t begin, std::size_t size) {
  return begin <= bytes.size() && size <= bytes.size() - begin;
}

}  // namespace

struct Mutator::Field {
  std::uint32_t number = 0;
  wire::Type type = wire::Type::kVarint;
  std::uint64_t value = 0;
  std::string bytes;
  std::optional<std::uint64_t> stated_bytes;  // a false length

  static std::optional<std::vector<Field>> read_all(std::string_view message) {
    std::vector<Field> fields;
    wire::Reader reader(message);
    while (const auto field = reader.next()) {
      fields.push_back(
          {field->field, field->type, field->number, std::string(field->bytes), std::nullopt});
    }
    return reader.failed() || fields.empty() ? std::nullopt : std::optional(std::move(fields));
  }

  void append_to(std::string& out) const {
    wire::append_varint(out, (std::uint64_t{number} << 3) | static_cast<std::uint64_t>(type));
    switch (type) {
      case wire::Type::kVarint:
        wire::append_varint(out, value);
        break;
      case wire::Type::kBytes:
        wire::append_varint(out, stated_bytes.value_or(bytes.size()));
        out += bytes;
        break;
      case wire::Type::kFixed64:
        out.append(reinterpret_cast<const char*>(&value), 8);
        break;
      case wire::Type::kFixed32:
        out.append(reinterpret_cast<const char*>(&value), 4);
        break;
    }
  }
};

std::size_t Mutator::below(std::size_t end) {
  return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
}

// Returns a value that limits and sums may handle wrongly.
std::uint64_t Mutator::number(std::uint64_t near) {
  const std::uint64_t power = std::uint64_t{1} << below(64);
  const std::array<std::uint64_t, 12> choices = {
      0,     1,         near + 1,  near - 1, near * 2,          near ^ power,
      power, power - 1, power + 1, ~near,    ~std::uint64_t{0}, below(256)};
  return choices[below(choices.size())];
}

std::string Mutator::mutate(std::string_view message) {
  auto fields = Field::read_all(message);
  if (!fields || one_in(16)) {
    return mutate_content(message, 0);
  }
  // Mostly the executable: the rest is small and has little structure.
  std::string changed;
  for (Field& field : *fields) {
    if (field.number == kExecutableField) {
      field.bytes = mutate_content(field.bytes, 1);
    }
    field.append_to(changed);
  }
  return changed;
}

std::string Mutator::mutate_content(std::string_view bytes, int depth) {
  if (bytes.starts_with(kElfMagic) && !one_in(8)) {
    return mutate_object(std::string(bytes));
  }
  auto fields = depth < kMaxDepth ? Field::read_all(bytes) : std::nullopt;
  if (!fields) {
    std::string changed(bytes);
    mutate_bytes_(changed);
    return changed;
  }
  const std::size_t index = choose(*fields);
  Field& field = (*fields)[index];
  if (field.type == wire::Type::kBytes && !field.bytes.empty() && !one_in(8)) {
    field.bytes = mutate_content(field.bytes, depth + 1);
  } else {
    damage(*fields, index);
  }
  std::string changed;
  for (const Field& one : *fields) {
    one.append_to(changed);
  }
  return changed;
}

// Large fields hold most of what can go wrong; most reads are of small ones.
std::size_t Mutator::choose(const std::vector<Field>& fields) {
  if (one_in(2)) {
    return below(fields.size());
  }
  std::size_t total = 0;
  for (const Field& field : fields) {
    total += field.bytes.size() + 1;
  }
  std::size_t position = below(total);
  std::size_t index = 0;
  while (position > fields[index].bytes.size()) {
    position -= fields[index].bytes.size() + 1;
    ++index;
  }
  return index;
}

void Mutator::damage(std::vector<Field>& fields, std::size_t index) {
  const auto at = [&](std::size_t i) { return fields.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::size_t other = below(fields.size());
  Field copy = fields[index];
  switch (below(10)) {
    case 0:
      fields.erase(at(index));
      break;
    case 1:
      fields.insert(at(index), std::move(copy));
      break;
    case 2:
      fields.insert(at(other), std::move(copy));
      break;
    case 3:
      std::swap(fields[index], fields[other]);
      break;
    case 4:  // the contents of another field
      fields[index].type = fields[other].type;
      fields[index].value = fields[other].value;
      fields[index].bytes = fields[other].bytes;
      break;
    case 5:  // the number decides what a field means
      fields[index].number = static_cast<std::uint32_t>(1 + below(one_in(4) ? 130 : 20));
      break;
    case 6:
      fields[index].type = std::array{wire::Type::kVarint, wire::Type::kFixed64, wire::Type::kBytes,
                                      wire::Type::kFixed32}[below(4)];
      break;
    case 7:
      copy.number = static_cast<std::uint32_t>(1 + below(20));
      fields.push_back(std::move(copy));
      break;
    default:
      change(fields[index]);
  }
}

void Mutator::change(Field& field) {
  if (field.type != wire::Type::kBytes) {
    field.value = number(field.value);
    return;
  }
  switch (below(5)) {
    case 0:
      field.stated_bytes = number(field.bytes.size());
      break;
    case 1:
      field.bytes.resize(below(field.bytes.size() + 1));
      break;
    case 2:  // one more number at the end, in case the field is a packed list
      wire::append_varint(field.bytes, number(field.bytes.size()));
      break;
    case 3:  // a list of many numbers
      for (std::size_t i = below(64); i > 0; --i) {
        wire::append_varint(field.bytes, below(8));
      }
      break;
    default:
      mutate_bytes_(field.bytes);
  }
}

// Changes one number of the file header, of a section header, or of a section.
std::string Mutator::mutate_object(std::string object) {
  if (one_in(16) || object.size() < sizeof(Elf64_Ehdr)) {
    object.resize(below(object.size() + 1));
    return object;
  }
  const auto file = load<Elf64_Ehdr>(object, 0);
  const std::size_t num_sections = std::max<std::size_t>(file.e_shnum, 1);
  std::size_t begin = 0;
  std::size_t size = sizeof(Elf64_Ehdr);
  if (!one_in(8)) {
    begin = file.e_shoff + below(num_sections) * sizeof(Elf64_Shdr);
    size = sizeof(Elf64_Shdr);
    if (!one_in(3) && fits(object, begin, size)) {
      const auto section = load<Elf64_Shdr>(object, begin);
      begin = section.sh_offset;
      size = section.sh_size;
    }
  }
  if (!fits(object, begin, size)) {
    begin = 0;
    size = object.size();
  }
  const std::size_t width = std::size_t{1} << below(4);
  if (size < width) {
    return object;
  }
  char* position = object.data() + begin + below(size / width) * width;
  std::uint64_t value = 0;
  std::memcpy(&value, position, width);
  value = number(value);
  std::memcpy(position, &value, width);
  return object;
}

}  // namespace cyxla::fuzz

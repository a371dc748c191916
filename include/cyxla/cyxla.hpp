// SPDX-License-Identifier: Apache-2.0
// C++20 convenience over cyxla.h: owning handles, ranges instead of pointers, exceptions instead of
// -1. It adds nothing that the C table cannot do and needs neither Python nor the PJRT header.
//
//   cyxla::Program program(*api, *spec);
//   std::vector<double> x(3), y(3);
//   program.execute({cyxla::input(x)}, {cyxla::output(y)});
#pragma once

#if __cplusplus <= 201703L
#error "cyxla.hpp needs C++20: compile with -std=c++20, or use cyxla.h, which is C"
#endif

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cyxla.h"

namespace cyxla {

// A failed execution; what() is last_error()'s message.
class ExecutionError : public std::runtime_error {
 public:
  explicit ExecutionError(const cyxla_api& api)
      : std::runtime_error(message_of(api)), code_(api.last_error_code()) {}

  // CYXLA_ERROR_EXECUTION, CYXLA_ERROR_ARGUMENT and so on.
  std::int32_t code() const noexcept { return code_; }

 private:
  static std::string message_of(const cyxla_api& api) {
    std::array<char, 1024> buffer = {};
    api.last_error(buffer.data(), buffer.size());
    return buffer.data();
  }

  std::int32_t code_;
};

// The PJRT_Buffer_Type of a C++ type. bool, the fixed-width integers, float, double and
// std::complex have one; specialize it for a 16-bit or 8-bit float type of your own.
template <typename T>
struct ElementType;

#define CYXLA_HPP_ELEMENT_TYPE(type, number)      \
  template <>                                     \
  struct ElementType<type> {                      \
    static constexpr std::int32_t value = number; \
  }
CYXLA_HPP_ELEMENT_TYPE(bool, CYXLA_PRED);
CYXLA_HPP_ELEMENT_TYPE(std::int8_t, CYXLA_S8);
CYXLA_HPP_ELEMENT_TYPE(std::int16_t, CYXLA_S16);
CYXLA_HPP_ELEMENT_TYPE(std::int32_t, CYXLA_S32);
CYXLA_HPP_ELEMENT_TYPE(std::int64_t, CYXLA_S64);
CYXLA_HPP_ELEMENT_TYPE(std::uint8_t, CYXLA_U8);
CYXLA_HPP_ELEMENT_TYPE(std::uint16_t, CYXLA_U16);
CYXLA_HPP_ELEMENT_TYPE(std::uint32_t, CYXLA_U32);
CYXLA_HPP_ELEMENT_TYPE(std::uint64_t, CYXLA_U64);
CYXLA_HPP_ELEMENT_TYPE(float, CYXLA_F32);
CYXLA_HPP_ELEMENT_TYPE(double, CYXLA_F64);
CYXLA_HPP_ELEMENT_TYPE(std::complex<float>, CYXLA_C64);
CYXLA_HPP_ELEMENT_TYPE(std::complex<double>, CYXLA_C128);
#undef CYXLA_HPP_ELEMENT_TYPE

// A type that has an ElementType.
template <typename T>
concept Element = requires {
  ElementType<T>::value;
};

template <typename Range, typename Value>
concept RangeOf = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    std::same_as<std::ranges::range_value_t<Range>, Value>;

// Elements one after the other: std::vector, std::array, std::span, a C array.
template <typename Range>
concept ElementRange =
    RangeOf<Range, std::ranges::range_value_t<Range>> && Element<std::ranges::range_value_t<Range>>;

// Elements that outlive the expression: those of a span and of what has a name.
template <typename Range>
concept BorrowedRange = ElementRange<Range> && std::ranges::borrowed_range<Range>;

template <typename Range>
concept WritableRange = BorrowedRange<Range> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

// An output of a program. Borrows the memory.
struct Output {
  // The element type of an output whose memory is not checked.
  static constexpr std::int32_t kUnchecked = 0;

  // Memory whose size nobody checks: it takes spec.output_bytes. nullptr drops the output.
  Output(void* address) noexcept : data(address) {}  // NOLINT(google-explicit-constructor)
  Output(void* address, std::int32_t type, std::size_t count) noexcept
      : data(address), element_type(type), num_elements(count) {}

  void* data;
  std::int32_t element_type = kUnchecked;
  std::size_t num_elements = 0;
};

// An input that reads `values`, dense and row-major. Borrows the memory. A temporary other than a
// span is refused: it is gone when the program runs.
template <ElementRange Range>
cyxla_input input(Range&& values) = delete;
template <BorrowedRange Range>
cyxla_input input(Range&& values) noexcept {
  return {std::ranges::data(values), ElementType<std::ranges::range_value_t<Range>>::value,
          std::ranges::size(values)};
}
template <Element T>
cyxla_input input(const T& scalar) noexcept {
  return {&scalar, ElementType<T>::value, 1};
}
template <Element T>
cyxla_input input(const T&& scalar) = delete;

// An output that writes `values`; the rest is as with input().
template <ElementRange Range>
Output output(Range&& values) = delete;
template <WritableRange Range>
Output output(Range&& values) noexcept {
  return {std::ranges::data(values), ElementType<std::ranges::range_value_t<Range>>::value,
          std::ranges::size(values)};
}
template <Element T>
Output output(T& scalar) noexcept {
  return {&scalar, ElementType<T>::value, 1};
}
template <Element T>
Output output(const T&& scalar) = delete;

namespace detail {

// "F64 (12)".
inline std::string type_text(std::int32_t element_type) {
  static constexpr std::array kNames = {
      "unchecked",  "PRED",   "S8",       "S16",           "S32",
      "S64",        "U8",     "U16",      "U32",           "U64",
      "F16",        "F32",    "F64",      "BF16",          "C64",
      "C128",       "F8E5M2", "F8E4M3FN", "F8E4M3B11FNUZ", "F8E5M2FNUZ",
      "F8E4M3FNUZ", "S4",     "U4",       "TOKEN",         "S2",
      "U2",         "F8E4M3", "F8E3M4",   "F8E8M0FNU",     "F4E2M1FN"};
  const auto index = static_cast<std::size_t>(element_type);
  const char* name = index < kNames.size() ? kNames[index] : "unknown type";
  return std::string(name) + " (" + std::to_string(element_type) + ')';
}

inline std::string counted(std::size_t count, const char* noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

// Throws std::invalid_argument unless an array has the declared type and number of elements.
inline void check_array(const cyxla_program_spec& spec, const char* side, std::size_t index,
                        std::int32_t declared_type, std::size_t declared_elements,
                        std::int32_t type, std::size_t num_elements) {
  std::string expected;
  if (type != declared_type) {
    expected = "element type " + type_text(declared_type) + ", not " + type_text(type);
  } else if (num_elements != declared_elements) {
    expected = counted(declared_elements, "element") + ", not " + std::to_string(num_elements);
  } else {
    return;
  }
  throw std::invalid_argument(std::string(side) + ' ' + std::to_string(index) + " of the program " +
                              spec.name + " must have " + expected);
}

inline void check_output(const cyxla_program_spec& spec, std::size_t index, const Output& output) {
  if (output.element_type != Output::kUnchecked) {
    check_array(spec, "output", index, spec.output_types[index], spec.output_elements[index],
                output.element_type, output.num_elements);
  }
}

}  // namespace detail

// The inputs of a call: a brace list of input(), or a container or span of cyxla_input. Borrows.
class Inputs {
 public:
  Inputs(std::initializer_list<cyxla_input> inputs) noexcept
      : Inputs(inputs.begin(), inputs.size()) {}
  template <RangeOf<cyxla_input> Range>
  Inputs(const Range& inputs) noexcept  // NOLINT(google-explicit-constructor)
      : Inputs(std::ranges::data(inputs), std::ranges::size(inputs)) {}

  const cyxla_input* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  Inputs(const cyxla_input* data, std::size_t size) noexcept : data_(data), size_(size) {}

  const cyxla_input* data_;
  std::size_t size_;
};

// The outputs of a call: a brace list of output(), nullptr and addresses, or a container or span of
// Output or of addresses. Borrows.
class Outputs {
 public:
  Outputs(std::initializer_list<Output> outputs) noexcept
      : Outputs(outputs.begin(), nullptr, outputs.size()) {}
  template <RangeOf<Output> Range>
  Outputs(const Range& outputs) noexcept  // NOLINT(google-explicit-constructor)
      : Outputs(std::ranges::data(outputs), nullptr, std::ranges::size(outputs)) {}
  template <RangeOf<void*> Range>
  Outputs(const Range& addresses) noexcept  // NOLINT(google-explicit-constructor)
      : Outputs(nullptr, std::ranges::data(addresses), std::ranges::size(addresses)) {}

  std::size_t size() const noexcept { return size_; }

  // Calls `function` with the addresses as the C interface takes them, after checking types and
  // sizes where they are known. Allocates for more than 32 outputs with types.
  template <typename Function>
  auto with_addresses(const cyxla_program_spec& spec, Function function) const {
    if (outputs_ == nullptr) {
      return function(addresses_);
    }
    std::array<void*, 32> few;
    std::vector<void*> many(size_ > few.size() ? size_ : 0);
    void** const gathered = many.empty() ? few.data() : many.data();
    for (std::size_t i = 0; i < size_; ++i) {
      detail::check_output(spec, i, outputs_[i]);
      gathered[i] = outputs_[i].data;
    }
    return function(static_cast<void* const*>(gathered));
  }

 private:
  Outputs(const Output* outputs, void* const* addresses, std::size_t size) noexcept
      : outputs_(outputs), addresses_(addresses), size_(size) {}

  const Output* outputs_;  // or null, and then addresses_ has them
  void* const* addresses_;
  std::size_t size_;
};

// A program with inputs and outputs bound to fixed memory, which must outlive it. One thread at a
// time. A moved-from Call can be assigned and destroyed.
class [[nodiscard]] Call {
 public:
  Call(Call&& other) noexcept
      : api_(other.api_), spec_(other.spec_), call_(std::exchange(other.call_, nullptr)) {}
  Call& operator=(Call&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(spec_, other.spec_);
    std::swap(call_, other.call_);
    return *this;
  }
  ~Call() { api_->discard(call_); }

  // Executes once. Throws ExecutionError.
  void operator()() { check(api_->call(call_)); }

  // Binds an input, or an output, to other memory from the next execution on; `index` counts the
  // inputs, then the outputs. Throws std::invalid_argument for a wrong index, type or number of
  // elements, and ExecutionError; the old memory stays bound then.
  void rebind(std::size_t index, const cyxla_input& input) {
    if (call_ != nullptr) {
      check_index(index, 0, spec_->num_inputs, "an input");
      detail::check_array(*spec_, "input", index, spec_->input_types[index],
                          spec_->input_elements[index], input.element_type, input.num_elements);
    }
    check(api_->rebind(call_, index, input.data));
  }
  void rebind(std::size_t index, const Output& output) {
    if (call_ != nullptr) {
      check_index(index, spec_->num_inputs, spec_->num_outputs, "an output");
      detail::check_output(*spec_, index - spec_->num_inputs, output);
    }
    check(api_->rebind(call_, index, output.data));
  }

 private:
  friend class Program;
  Call(const cyxla_api& api, const cyxla_program_spec& spec, cyxla_call* call) noexcept
      : api_(&api), spec_(&spec), call_(call) {}

  void check(int result) const {
    if (result != 0) {
      throw ExecutionError(*api_);
    }
  }
  void check_index(std::size_t index, std::size_t begin, std::size_t count,
                   const char* what) const {
    if (index < begin || index - begin >= count) {
      throw std::invalid_argument("array " + std::to_string(index) + " of the program " +
                                  spec_->name + " is not " + what + ": it has " +
                                  detail::counted(spec_->num_inputs, "input") + " and then " +
                                  detail::counted(spec_->num_outputs, "output"));
    }
  }

  const cyxla_api* api_;
  const cyxla_program_spec* spec_;  // which the call keeps
  cyxla_call* call_;
};

// A compiled program, kept alive by this object. Any number of threads may use it at once, without
// the GIL. A moved-from Program can be assigned and destroyed.
class [[nodiscard]] Program {
 public:
  // Retains `spec`, which comes from api.program_spec(executable).
  Program(const cyxla_api& api, const cyxla_program_spec& spec) noexcept
      : api_(&api), spec_(&spec) {
    api_->retain(spec_);
  }
  Program(const Program& other) noexcept : api_(other.api_), spec_(other.spec_) {
    api_->retain(spec_);
  }
  Program(Program&& other) noexcept
      : api_(other.api_), spec_(std::exchange(other.spec_, nullptr)) {}
  Program& operator=(Program other) noexcept {
    std::swap(api_, other.api_);
    std::swap(spec_, other.spec_);
    return *this;
  }
  ~Program() { api_->release(spec_); }

  const cyxla_program_spec& spec() const noexcept { return *spec_; }

  // Executes once; a null output is dropped. Throws ExecutionError, and std::invalid_argument for a
  // wrong number of inputs or outputs and for an output() of another type or size.
  void execute(const Inputs& inputs, const Outputs& outputs, bool zero_copy = true) const {
    check_counts(inputs.size(), outputs.size());
    const int result = outputs.with_addresses(*spec_, [&](void* const* addresses) {
      return api_->execute(spec_, inputs.data(), addresses, zero_copy ? 1 : 0);
    });
    if (result != 0) {
      throw ExecutionError(*api_);
    }
  }

  // Binds memory that stays the same over many calls. Throws as execute().
  Call prepare(const Inputs& inputs, const Outputs& outputs, bool zero_copy = true) const {
    check_counts(inputs.size(), outputs.size());
    cyxla_call* const call = outputs.with_addresses(*spec_, [&](void* const* addresses) {
      return api_->prepare(spec_, inputs.data(), addresses, zero_copy ? 1 : 0);
    });
    if (call == nullptr) {
      throw ExecutionError(*api_);
    }
    return {*api_, *spec_, call};
  }

 private:
  void check_counts(std::size_t num_inputs, std::size_t num_outputs) const {
    if (spec_ == nullptr) {
      throw std::invalid_argument(
          "this cyxla::Program was moved from; use the one it was moved to");
    }
    if (num_inputs != spec_->num_inputs || num_outputs != spec_->num_outputs) {
      throw std::invalid_argument(
          "the program takes " + detail::counted(spec_->num_inputs, "input") + " and gives " +
          detail::counted(spec_->num_outputs, "output") + ", not " + std::to_string(num_inputs) +
          " and " + std::to_string(num_outputs));
    }
  }

  const cyxla_api* api_;
  const cyxla_program_spec* spec_;  // null when it was moved from
};

}  // namespace cyxla

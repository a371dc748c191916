// SPDX-License-Identifier: Apache-2.0
// C++20 convenience over cyxla.h: owning handles, spans instead of pointers, exceptions instead of
// -1. It adds nothing that the C table cannot do and needs neither Python nor the PJRT header.
#pragma once

#if __cplusplus <= 201703L
#error "cyxla.hpp needs C++20: compile with -std=c++20, or use cyxla.h, which is C"
#endif

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "cyxla.h"

namespace cyxla {

// A failed execution; what() is last_error()'s message.
class ExecutionError : public std::runtime_error {
 public:
  explicit ExecutionError(const cyxla_api& api) : std::runtime_error(message_of(api)) {}

 private:
  static std::string message_of(const cyxla_api& api) {
    std::array<char, 1024> buffer = {};
    api.last_error(buffer.data(), buffer.size());
    return buffer.data();
  }
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

// An input that reads `values`, dense and row-major. Borrows the memory.
template <typename T, std::size_t Extent>
cyxla_input input(std::span<T, Extent> values) noexcept {
  return {values.data(), ElementType<std::remove_const_t<T>>::value, values.size()};
}
template <typename T>
cyxla_input input(const T& scalar) noexcept {
  return {&scalar, ElementType<T>::value, 1};
}
template <typename T>
cyxla_input input(const T&&) = delete;  // a temporary is gone when the program runs

// A program with inputs and outputs bound to fixed memory, which must outlive it. One thread at a
// time.
class [[nodiscard]] Call {
 public:
  Call(Call&& other) noexcept : api_(other.api_), call_(std::exchange(other.call_, nullptr)) {}
  Call& operator=(Call&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(call_, other.call_);
    return *this;
  }
  ~Call() { api_->discard(call_); }

  // Executes once. Throws ExecutionError.
  void operator()() const {
    if (api_->call(call_) != 0) {
      throw ExecutionError(*api_);
    }
  }

 private:
  friend class Program;
  Call(const cyxla_api& api, cyxla_call* call) noexcept : api_(&api), call_(call) {}

  const cyxla_api* api_;
  cyxla_call* call_;
};

// A compiled program, kept alive by this object. Any number of threads may use it at once, without
// the GIL.
class [[nodiscard]] Program {
 public:
  // Retains `spec`, which comes from api.program_spec(executable).
  Program(const cyxla_api& api, const cyxla_program_spec& spec) noexcept
      : api_(&api), spec_(&spec) {
    api_->retain(spec_);
  }
  Program(const Program& other) noexcept : Program(*other.api_, *other.spec_) {}
  Program& operator=(Program other) noexcept {
    std::swap(api_, other.api_);
    std::swap(spec_, other.spec_);
    return *this;
  }
  ~Program() { api_->release(spec_); }

  const cyxla_program_spec& spec() const noexcept { return *spec_; }

  // Executes once; a null output is dropped. Throws ExecutionError, and std::invalid_argument for a
  // wrong number of inputs or outputs.
  void execute(std::span<const cyxla_input> inputs, std::span<void* const> outputs,
               bool zero_copy = true) const {
    check_counts(inputs.size(), outputs.size());
    if (api_->execute(spec_, inputs.data(), outputs.data(), zero_copy ? 1 : 0) != 0) {
      throw ExecutionError(*api_);
    }
  }

  // Binds memory that stays the same over many calls. Throws as execute().
  Call prepare(std::span<const cyxla_input> inputs, std::span<void* const> outputs,
               bool zero_copy = true) const {
    check_counts(inputs.size(), outputs.size());
    cyxla_call* call = api_->prepare(spec_, inputs.data(), outputs.data(), zero_copy ? 1 : 0);
    if (call == nullptr) {
      throw ExecutionError(*api_);
    }
    return {*api_, call};
  }

 private:
  void check_counts(std::size_t num_inputs, std::size_t num_outputs) const {
    if (num_inputs != spec_->num_inputs || num_outputs != spec_->num_outputs) {
      throw std::invalid_argument("the program takes " + counted(spec_->num_inputs, "input") +
                                  " and gives " + counted(spec_->num_outputs, "output") + ", not " +
                                  std::to_string(num_inputs) + " and " +
                                  std::to_string(num_outputs));
    }
  }

  static std::string counted(std::size_t count, const char* noun) {
    return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
  }

  const cyxla_api* api_;
  const cyxla_program_spec* spec_;
};

}  // namespace cyxla

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pjrt_c_api.h>

#include "failures.h"

namespace fake_plugin {

inline constexpr std::size_t kMaxRank = 40;

struct ArrayType {
  PJRT_Buffer_Type element_type = PJRT_Buffer_Type_INVALID;
  std::vector<std::int64_t> dimensions;

  std::size_t num_elements() const noexcept;
  std::size_t size_bytes() const noexcept;
};

// Returns the bytes of one element, 0 for types that the plugin does not know.
std::size_t itemsize(PJRT_Buffer_Type element_type) noexcept;
PJRT_Buffer_Type element_type(std::string_view name) noexcept;

enum class Operation { kCopy, kScale, kAdd, kSum, kIota, kFill, kFail };

// How to compute an output.
struct Output {
  ArrayType type;
  Operation operation = Operation::kCopy;
  std::size_t left = 0;             // index of the input
  std::size_t right = 0;            // index of the second input of kAdd
  double number = 0;                // of kScale and kFill
  Failure failure;                  // of kFail, which ends the execution with it
  std::optional<std::size_t> into;  // the input whose memory it takes over if donated
};

// A program in the plugin's own language, with a line for each input and output, in order:
//
//   # a comment
//   input F32[3]
//   input F64[2,2]
//   output F32[3] copy 0
//   output F32[3] scale 0 2.5
//   output F32[3] add 0 0
//   output F64[] sum 1
//   output S32[2,3] iota
//   output F32[] fill 7
//   output F32[3] fail INTERNAL some text
//   output F32[3] scale 0 2.5 into 2
//
// `into` names an input that no operation reads. The output takes over its memory if the input was
// made with kMutableZeroCopy and may be donated; otherwise the output gets its own memory. copy
// works on all element types, the others on PRED, integers, F32, F64 and complex numbers. Immutable
// once parsed, so any thread may read it.
struct Program {
  std::vector<ArrayType> inputs;
  std::vector<Output> outputs;

  // Returns what is wrong with the text, or an empty string.
  std::string parse(std::string_view text);
};

// Computes an output into `result` from the inputs' memory.
void evaluate(const Program& program, const Output& output, const void* const* inputs,
              void* result) noexcept;

}  // namespace fake_plugin

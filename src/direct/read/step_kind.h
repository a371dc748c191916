// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyxla::direct {

// Steps that are nested deeper are not read; far above what a program has that gains from a direct
// call.
inline constexpr std::size_t kMaxNesting = 16;

// Field numbers of ThunkProto's alternatives: the steps that cyxla runs, and those that XLA makes
// of matrix products.
enum StepKind : std::uint32_t {
  kCall = 3,
  kConditional = 4,
  kXnnFusion = 6,
  kMatrixProduct = 7,
  kWhile = 10,
  kKernel = 11,
  kCopy = 12,
  kYnnFusion = 21,
};

// The name of a step that cyxla runs, as ThunkProto spells its kind; nullptr for the others.
const char* kind_name(std::uint32_t kind);

// What a step is that only the plugin runs.
const char* plugin_step(std::uint32_t kind);

}  // namespace cyxla::direct

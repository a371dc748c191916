// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "direct/read/tables.h"

namespace cyxla::direct {

// Deeper steps are not read. Programs for which a direct call saves time nest far less.
inline constexpr std::size_t kMaxNesting = 16;

using ThunkField = Message<proto::kThunk>::AnyName;

// The fields of ThunkProto that name a kind of step: the steps that cyxla runs, and those that XLA
// makes of matrix products. Other kinds have the numbers of their fields.
enum class StepKind : std::uint32_t {
  kUnknown = 0,
  kCall = ThunkField("call_thunk").number(),
  kConditional = ThunkField("conditional_thunk").number(),
  kXnnFusion = ThunkField("xnn_fusion_thunk").number(),
  kDot = ThunkField("dot_thunk").number(),
  kWhile = ThunkField("while_thunk").number(),
  kKernel = ThunkField("kernel_thunk").number(),
  kCopy = ThunkField("copy_thunk").number(),
  kYnnFusion = ThunkField("ynn_fusion_thunk").number(),
};

// A ThunkProto.
struct StepMessage {
  StepKind kind = StepKind::kUnknown;
  std::string_view name;     // its kind once more, as XLA spells it
  std::string_view info;     // an InfoProto
  std::string_view content;  // the message of its kind
};

// `number` is the step's in refusals, counted from 1. Throws Refusal.
StepMessage read_step_message(std::string_view bytes, std::size_t number);

// The name that XLA gives to a step that cyxla runs; nullptr for the others.
const char* direct_name(StepKind kind);

// What a step is that only the plugin runs, such as "a sort".
const char* plugin_step(StepKind kind);

}  // namespace cyxla::direct

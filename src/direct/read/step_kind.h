// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cyxla::direct {

// Deeper steps are not read. Programs for which a direct call saves time nest far less.
inline constexpr std::size_t kMaxNesting = 16;

// Numbers of ThunkProto's fields, one for each kind of step.
enum class StepKind : std::uint32_t {
  kUnknown = 0,
  kCall = 3,
  kConditional = 4,
  kSort = 5,
  kXnnFusion = 6,
  kDot = 7,
  kRngGetAndUpdateState = 8,
  kTopK = 9,
  kWhile = 10,
  kKernel = 11,
  kCopy = 12,
  kFft = 13,
  kInfeed = 14,
  kOutfeed = 15,
  kCustomCall = 16,
  kConvolution = 17,
  kCollective = 18,
  kPartitionId = 19,
  kReplicaId = 20,
  kYnnFusion = 21,
  kRngSeed = 22,
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

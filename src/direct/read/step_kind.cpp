// SPDX-License-Identifier: Apache-2.0
#include "direct/read/step_kind.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>

#include "direct/read/tables.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

struct KindText {
  StepKind kind;
  const char* text;
};

constexpr KindText kDirectNames[] = {
    {StepKind::kCall, "call"},   {StepKind::kConditional, "conditional"},
    {StepKind::kWhile, "while"}, {StepKind::kKernel, "kernel"},
    {StepKind::kCopy, "copy"},
};

constexpr KindText kPluginSteps[] = {
    {StepKind::kSort, "a sort"},
    {StepKind::kXnnFusion, "an XNNPACK fusion"},
    {StepKind::kDot, "a matrix product"},
    {StepKind::kRngGetAndUpdateState, "an update of the random-number state"},
    {StepKind::kTopK, "a top-k"},
    {StepKind::kFft, "a Fourier transform"},
    {StepKind::kInfeed, "an infeed"},
    {StepKind::kOutfeed, "an outfeed"},
    {StepKind::kCustomCall, "a custom call"},
    {StepKind::kConvolution, "a convolution"},
    {StepKind::kCollective, "a collective operation"},
    {StepKind::kPartitionId, "a partition id"},
    {StepKind::kReplicaId, "a replica id"},
    {StepKind::kYnnFusion, "a YNNPACK fusion"},
    {StepKind::kRngSeed, "a seed of the random-number state"},
};

const char* text_of(std::span<const KindText> texts, StepKind kind, const char* otherwise) {
  const auto found = std::ranges::find(texts, kind, &KindText::kind);
  return found == texts.end() ? otherwise : found->text;
}

}  // namespace

StepMessage read_step_message(std::string_view bytes, std::size_t number) {
  const Message<proto::kThunk> message(bytes, "a step");
  StepMessage step{.name = message.bytes("kind"), .info = message.bytes("info")};
  for (const wire::Field& value : message.values()) {
    if (value.field < static_cast<std::uint32_t>(StepKind::kCall)) {
      continue;  // its name or info, or absent
    }
    if (step.kind != StepKind::kUnknown) {
      throw Refusal(Reason::kMalformed, "step " + std::to_string(number) + " is of several kinds");
    }
    step.kind = static_cast<StepKind>(value.field);
    step.content = value.bytes;
  }
  return step;
}

const char* direct_name(StepKind kind) { return text_of(kDirectNames, kind, nullptr); }

const char* plugin_step(StepKind kind) { return text_of(kPluginSteps, kind, "of an unknown kind"); }

}  // namespace cyxla::direct

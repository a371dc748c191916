// SPDX-License-Identifier: Apache-2.0
#include "direct/read/step_kind.h"

#include <span>
#include <string>

#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

struct KindText {
  ThunkField field;
  const char* text;
};

constexpr KindText kDirectNames[] = {
    {"call_thunk", "call"},   {"conditional_thunk", "conditional"},
    {"while_thunk", "while"}, {"kernel_thunk", "kernel"},
    {"copy_thunk", "copy"},
};

constexpr KindText kPluginSteps[] = {
    {"sort_thunk", "a sort"},
    {"xnn_fusion_thunk", "an XNNPACK fusion"},
    {"dot_thunk", "a matrix product"},
    {"rng_get_and_update_state_thunk", "an update of the random-number state"},
    {"top_k_thunk", "a top-k"},
    {"fft_thunk", "a Fourier transform"},
    {"infeed_thunk", "an infeed"},
    {"outfeed_thunk", "an outfeed"},
    {"custom_call_thunk", "a custom call"},
    {"convolution_thunk", "a convolution"},
    {"collective_thunk", "a collective operation"},
    {"partition_id_thunk", "a partition id"},
    {"replica_id_thunk", "a replica id"},
    {"ynn_fusion_thunk", "a YNNPACK fusion"},
    {"rng_seed_thunk", "a seed of the random-number state"},
};

const char* text_of(std::span<const KindText> texts, StepKind kind, const char* otherwise) {
  for (const KindText& one : texts) {
    if (static_cast<StepKind>(one.field.number()) == kind) {
      return one.text;
    }
  }
  return otherwise;
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

// SPDX-License-Identifier: Apache-2.0
#include "runtime/direct_route.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "direct/read/read_plan.h"
#include "direct/read/work.h"
#include "direct/refusal.h"
#include "direct/verify/canary.h"
#include "direct/verify/shared_word.h"
#include "direct/verify/unreached.h"
#include "direct/verify/verify.h"
#include "pjrt/compile_options.h"
#include "pjrt/element_type.h"
#include "runtime/pjrt_context.h"

namespace cyxla::runtime {
namespace {

// How much work loops of unknown trip count may do on test inputs, in the unit of
// direct/read/work.h: about 100 ms. A loop that needs more trips ends the trial.
constexpr double kTrialWork = 100'000 * direct::kWorkPerMicrosecond;
constexpr double kMaxTrialTrips = 1e6;

// A kernel may contain a whole loop, whose trips cannot be counted from outside. Only such a loop
// can reach this limit, and only if it does not end.
constexpr direct::ChildLimits kLoopLimits{.processor_time = std::chrono::seconds(2)};

// The work of all input variations that are tried to reach a block, and their minimum number.
constexpr double kVariedWork = 4 * direct::kLongWork;
constexpr double kMinVariations = 8;

// Has kernels of several kinds: a fusion that calls the mathematics library, a reduction, a
// matrix-vector product, a loop, a constant array, an output that is an input.
constexpr const char* kCanary = R"(
module @canary {
  func.func public @main(%x: tensor<8xf64>, %m: tensor<8x8xf64>)
      -> (tensor<8xf64>, tensor<f64>, tensor<8xf64>, tensor<8xf64>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f64>
    %weights = stablehlo.constant dense<[0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.25]> : tensor<8xf64>
    %sine = stablehlo.sine %x : tensor<8xf64>
    %logarithm = stablehlo.log %x : tensor<8xf64>
    %mixed = stablehlo.add %sine, %logarithm : tensor<8xf64>
    %weighted = stablehlo.multiply %mixed, %weights : tensor<8xf64>
    %sum = stablehlo.reduce(%weighted init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<8xf64>, tensor<f64>) -> tensor<f64>
    %product = stablehlo.dot_general %m, %weighted, contracting_dims = [1] x [0]
        : (tensor<8x8xf64>, tensor<8xf64>) -> tensor<8xf64>
    return %weighted, %sum, %product, %x : tensor<8xf64>, tensor<f64>, tensor<8xf64>, tensor<8xf64>
  }
}
)";

Signature canary_signature() {
  const ArrayType vector{PJRT_Buffer_Type_F64, {8}};
  const ArrayType matrix{PJRT_Buffer_Type_F64, {8, 8}};
  const ArrayType scalar{PJRT_Buffer_Type_F64, {}};
  Signature signature;
  signature.name = "canary";
  signature.inputs = {vector, matrix};
  signature.outputs = {vector, scalar, vector, vector};
  return signature;
}

direct::Expected expected_of(const Signature& signature) {
  direct::Expected expected;
  for (const ArrayType& input : signature.inputs) {
    expected.input_bytes.push_back(input.size_bytes());
  }
  for (const ArrayType& output : signature.outputs) {
    expected.output_bytes.push_back(output.size_bytes());
  }
  return expected;
}

std::vector<std::int32_t> input_types(const Signature& signature) {
  std::vector<std::int32_t> types;
  for (const ArrayType& input : signature.inputs) {
    types.push_back(input.element_type);
  }
  return types;
}

std::uint64_t max_trial_trips(const direct::Plan& plan) {
  return static_cast<std::uint64_t>(
      std::clamp(kTrialWork / std::max(plan.work, 1.0), 1.0, kMaxTrialTrips));
}

}  // namespace

const std::string& DirectRoute::plugin_refusal(bool may_fork) {
  std::call_once(once_, [&] { admit_plugin(may_fork); });
  return plugin_refusal_;
}

void DirectRoute::admit_plugin(bool may_fork) {
  if (client_.platform_name() != "cpu") {
    plugin_refusal_ = "the plugin computes on " + client_.platform_name() +
                      ", and only programs for the CPU can be called directly";
    return;
  }
  if (!capabilities_.aliased_inputs || !capabilities_.inplace_outputs) {
    plugin_refusal_ = "the plugin's buffers are not in the host's memory";
    return;
  }
  try {
    symbols_ = direct::ExternalSymbols::of_plugin(plugin_.api().source());
    const pjrt::LoadedExecutable canary =
        client_.compile(kCanary, "mlir", pjrt::serialize_compile_options({}));
    static_cast<void>(load(canary.serialize(), canary_signature(), canary,
                           may_fork ? Child::kAlways : Child::kNever));
  } catch (const direct::Refusal& refusal) {
    plugin_refusal_ =
        std::string("the plugin failed cyxla's trial program for direct calls: ") + refusal.what();
  } catch (const Error& error) {
    plugin_refusal_ =
        std::string("the plugin cannot compile cyxla's trial program for direct calls: ") +
        error.what();
  }
}

DirectProgram DirectRoute::open(const std::string& serialized, const Signature& signature,
                                const pjrt::LoadedExecutable& executable, bool may_fork) {
  if (!signature.in_place_outputs.empty()) {
    throw direct::Refusal(direct::Reason::kDonation,
                          "it is compiled with outputs_in_place, which only the plugin supports");
  }
  return load(serialized, signature, executable, may_fork ? Child::kForLoops : Child::kNever);
}

DirectProgram DirectRoute::load(const std::string& serialized, const Signature& signature,
                                const pjrt::LoadedExecutable& executable, Child child) {
  if (serialized.empty()) {
    throw direct::Refusal(direct::Reason::kPlatform, "the plugin cannot serialize it");
  }
  auto program = std::make_unique<direct::Executable>(
      direct::read_plan(serialized, expected_of(signature)), symbols_);
  direct::Context context(*program, direct::Runner::Counting::kOn);
  direct::Verification verification(*program, input_types(signature));
  if (child == Child::kAlways) {
    const std::string reason = direct::run_in_child([&] { return verification.run(context); });
    if (!reason.empty()) {
      throw direct::Refusal(direct::Reason::kTrial, reason);
    }
  } else if (program->plan().has_unbounded_loop) {
    try_loop(program->plan(), verification, context, child);
  }
  PjrtContext plugin_context(client_, capabilities_, signature, executable);
  const direct::Reference reference = [&](const cyxla_input* inputs, void* const* outputs) {
    Failure failure;
    return plugin_context.execute(inputs, outputs, InputPolicy::kCopy, failure);
  };
  const std::string difference = verification.compare(context, reference);
  if (!difference.empty()) {
    throw direct::Refusal(direct::Reason::kDifference, difference);
  }
  compare_unreached(program->plan(), verification, context, reference);
  const direct::Plan& plan = program->plan();
  const bool is_short = !plan.has_unbounded_loop && plan.work < direct::kShortWork;
  return {std::move(program), is_short};
}

// On test inputs, a loop of unknown trip count may never end, on either route.
void DirectRoute::try_loop(const direct::Plan& plan, direct::Verification& verification,
                           direct::Context& context, Child child) {
  if (child == Child::kNever) {
    throw direct::Refusal(
        direct::Reason::kTrial,
        "it has a loop of unknown trip count, which may only be tried in a child process");
  }
  const std::uint64_t max_trips = max_trial_trips(plan);
  const auto work = [&] {
    context.limit_trips(max_trips);
    return verification.run(context);
  };
  const std::string reason = direct::run_in_child(work, kLoopLimits);
  if (!reason.empty()) {
    throw direct::Refusal(
        direct::Reason::kTrial,
        "it has a loop of unknown trip count, and on test inputs a kernel failed or the loop did "
        "not end within " +
            std::to_string(max_trips) + " trips (" + reason + ")");
  }
}

// cyxla copies memory around a block's kernels itself. That it copies the right bytes in the right
// order is known only once both routes were compared in that block.
void DirectRoute::compare_unreached(const direct::Plan& plan, direct::Verification& verification,
                                    direct::Context& context, const direct::Reference& reference) {
  const auto doubtful_blocks = [&] {
    std::vector<direct::UnreachedBlock> blocks = direct::unreached_blocks(plan, context);
    std::erase_if(blocks, [](const auto& block) { return block.contents.empty(); });
    return blocks;
  };
  std::vector<direct::UnreachedBlock> doubtful = doubtful_blocks();
  if (doubtful.empty()) {
    return;
  }
  const std::uint64_t usable = usable_variations(plan, verification, context);
  for (std::size_t variation = 0; variation < direct::kMaxVariations; ++variation) {
    if ((usable >> variation & 1) == 0) {
      continue;
    }
    const std::string difference = verification.compare_variation(context, reference, variation);
    if (!difference.empty()) {
      throw direct::Refusal(direct::Reason::kDifference, difference);
    }
    doubtful = doubtful_blocks();
    if (doubtful.empty()) {
      return;
    }
  }
  throw direct::Refusal(direct::Reason::kUnverified,
                        doubtful.front().name() + " " + doubtful.front().contents +
                            " and was not reached by the inputs that compare both routes");
}

// Returns a bit for each variation that is worth its time; with loops of unknown trip count, for
// each one that ends.
std::uint64_t DirectRoute::usable_variations(const direct::Plan& plan,
                                             direct::Verification& verification,
                                             direct::Context& context) {
  const double number = std::clamp(kVariedWork / std::max(plan.work, 1.0), kMinVariations,
                                   static_cast<double>(direct::kMaxVariations));
  const auto count = static_cast<std::size_t>(number);
  if (!plan.has_unbounded_loop) {
    return (std::uint64_t{1} << count) - 1;
  }
  direct::SharedWord usable;
  const std::uint64_t max_trips = std::max<std::uint64_t>(max_trial_trips(plan) / count, 1);
  // The reason why the child ended does not matter: the word has what it finished by then.
  static_cast<void>(direct::run_in_child(
      [&] {
        for (std::size_t variation = 0; variation < count; ++variation) {
          context.limit_trips(max_trips);
          if (verification.run_variation(context, variation)) {
            usable.set_bits(std::uint64_t{1} << variation);
          }
        }
        return true;
      },
      kLoopLimits));
  return usable.value();
}

}  // namespace cyxla::runtime

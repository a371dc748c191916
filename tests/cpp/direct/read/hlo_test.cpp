// SPDX-License-Identifier: Apache-2.0
#include "direct/read/hlo.h"

#include <limits>
#include <string>
#include <vector>

#include "direct/messages.h"

namespace cyxla::direct {
namespace {

using test::bytes;
using test::computation;
using test::instruction;
using test::module;
using test::number;
using test::refusal;

const std::string kF32x3 = test::shape(ElementType::kF32, {3});
const std::string kS32 = test::shape(ElementType::kS32, {});

std::string parameter(std::uint64_t id, std::uint64_t input, const std::string& shape) {
  return instruction(id, "parameter", shape, number(9, input));
}

// (f32[3], s32[]) -> f32[3]; the parameters in the order that XLA may have given them.
std::vector<std::string> entry_instructions() {
  return {parameter(11, 1, kS32), parameter(10, 0, kF32x3),
          instruction(12, "fusion", kF32x3, test::operands({10, 11}) + test::calls({2}))};
}

std::string sample() {
  return module({computation(2, 5, {instruction(5, "sine", kF32x3)}),
                 computation(1, 12, entry_instructions())},
                1, {kF32x3, kS32}, kF32x3);
}

TEST(HloModule, GivesInstructionsAndRoots) {
  const std::string text = sample();
  const HloModule hlo(text);
  EXPECT_EQ(hlo.entry_root().id, 12u);
  EXPECT_EQ(hlo.root(2).opcode, "sine");
  const Instruction& fusion = hlo.instruction(12);
  EXPECT_EQ(fusion.opcode, "fusion");
  EXPECT_EQ(fusion.operands, (std::vector<std::uint64_t>{10, 11}));
  EXPECT_EQ(fusion.called_computations, std::vector<std::uint64_t>{2});
  EXPECT_FALSE(fusion.literal);
  EXPECT_EQ(hlo.instruction(11).parameter_number, 1u);
}

TEST(HloModule, GivesTheSignature) {
  const std::string text = sample();
  const HloModule hlo(text);
  ASSERT_EQ(hlo.input_shapes().size(), 2u);
  EXPECT_EQ(hlo.input_shapes()[0].size_bytes, 12u);
  EXPECT_EQ(hlo.input_shapes()[1].element_type, ElementType::kS32);
  ASSERT_EQ(hlo.output_shapes().size(), 1u);
  EXPECT_EQ(hlo.output_shapes()[0].size_bytes, 12u);
}

TEST(HloModule, GivesTheOutputsOfATuple) {
  const std::string tuple = test::tuple_shape({kF32x3, kS32});
  const std::string text =
      module({computation(1, 7, {instruction(7, "tuple", tuple)})}, 1, {}, tuple);
  const HloModule hlo(text);
  EXPECT_TRUE(hlo.input_shapes().empty());
  ASSERT_EQ(hlo.output_shapes().size(), 2u);
  EXPECT_EQ(hlo.output_shapes()[1].size_bytes, 4u);
}

TEST(HloModule, KnowsTheLengthOfLoops) {
  const auto is_unbounded = [](const std::string& backend_config) {
    const std::string text =
        sample() +
        bytes(3, computation(3, 0, {instruction(30, "while", kS32, bytes(43, backend_config))}));
    return HloModule(text).has_unbounded_loop();
  };
  const std::string init = R"("known_init_step":{"init":"0","step":"1"}})";
  EXPECT_FALSE(is_unbounded(R"({"known_trip_count":{"n":"1000000"},)" + init));
  EXPECT_TRUE(is_unbounded("{" + init));
  EXPECT_TRUE(is_unbounded(""));
  const std::string text = sample();
  EXPECT_FALSE(HloModule(text).has_unbounded_loop());
  EXPECT_EQ(refusal([&] { is_unbounded(R"({"known_trip_count":{"n":"1000001"}})"); }),
            "a loop runs 1000001 times, so calling it directly would not help");
  const std::string no_number = "the trip count of a loop is not a number";
  EXPECT_EQ(refusal([&] { is_unbounded(R"({"known_trip_count":{"n":"x"}})"); }), no_number);
  EXPECT_EQ(refusal([&] { is_unbounded(R"({"known_trip_count":{"n":")"); }), no_number);
  EXPECT_EQ(refusal([&] { is_unbounded(R"({"known_trip_count":{"n":"99999999999999999999"}})"); }),
            no_number);
}

TEST(HloModule, CountsTheTripsOfLoopsWithinLoops) {
  const auto loop = [](std::uint64_t id, int trips, std::uint64_t body) {
    return test::counted_loop(id, kS32, trips, body);
  };
  const auto trips = [](const std::vector<std::string>& computations) {
    const std::string text = module(computations, 1, {}, kS32);
    return HloModule(text).num_trips();
  };
  const std::string body = computation(7, 70, {instruction(70, "add", kS32)});
  const std::string inner = computation(6, 60, {loop(60, 20, 7), loop(61, 3, 7)});
  const std::string caller = computation(5, 50, {instruction(50, "call", kS32, test::calls({6}))});
  EXPECT_EQ(trips({body, computation(1, 10, {loop(10, 9, 7)})}), 9);
  EXPECT_EQ(trips({body, inner, computation(1, 10, {loop(10, 9, 6)})}), 9 * (1 + 20 + 3));
  EXPECT_EQ(trips({body, inner, caller, computation(1, 10, {loop(10, 9, 5)})}), 9 * (1 + 20 + 3));
  const std::string unbounded = instruction(10, "while", kS32, test::calls({6}));
  EXPECT_EQ(trips({body, inner, computation(1, 10, {unbounded})}), 0);
  const double unknown = trips({computation(1, 10, {loop(10, 9, 8)})});
  EXPECT_EQ(unknown, std::numeric_limits<double>::infinity());
}

TEST(HloModule, RefusesWhatItDoesNotKnow) {
  const auto with = [](const std::string& more) {
    return refusal([&] {
      const std::string text = sample() + more;
      const HloModule hlo(text);
    });
  };
  EXPECT_EQ(with(number(11, 1)), "the HLO module has field 11, which this cyxla does not know");
  EXPECT_EQ(with(bytes(3, number(9, 1))),
            "an HLO computation has field 9, which this cyxla does not know");
  EXPECT_EQ(with(bytes(3, bytes(2, number(99, 1)))),
            "an HLO instruction has field 99, which this cyxla does not know");
  EXPECT_EQ(
      with(bytes(3, bytes(2, bytes(98, "x")))),
      "field 98 (sparsity_config) of an HLO instruction has a value that cyxla does not support");
  EXPECT_EQ(with(bytes(3, computation(3, 0, {instruction(12, "add", kS32)}))),
            "two HLO instructions have the number 12");
  EXPECT_EQ(with(bytes(3, computation(2, 0, {}))), "two HLO computations have the number 2");
}

TEST(HloModule, RefusesMissingInstructions) {
  const std::string text = module({computation(1, 99, {})}, 1, {}, kS32);
  const HloModule hlo(text);
  EXPECT_EQ(refusal([&] { hlo.entry_root(); }),
            "the program has no HLO instruction with the number 99");
  EXPECT_EQ(refusal([&] { hlo.root(7); }), "the program has no HLO computation with the number 7");
}

std::string refused_inputs(const std::vector<std::string>& instructions,
                           const std::vector<std::string>& declared) {
  const std::string text = module({computation(1, 0, instructions)}, 1, declared, kS32);
  const HloModule hlo(text);
  return refusal([&] { hlo.input_shapes(); });
}

TEST(HloModule, RefusesInputsThatAreNotNumberedOneByOne) {
  const std::string reason = "the inputs of the program are not numbered consecutively";
  EXPECT_EQ(refused_inputs({parameter(1, 1, kS32)}, {kS32}), reason);
  EXPECT_EQ(refused_inputs({parameter(1, 0, kS32), parameter(2, 0, kS32)}, {kS32, kS32}), reason);
}

TEST(HloModule, RefusesArraysThatAreNotTheCallers) {
  const std::string transposed = test::shape(ElementType::kF32, {2, 3}, {0, 1});
  const std::string row_major = test::shape(ElementType::kF32, {2, 3});
  const std::string tuple = test::tuple_shape({kS32});
  const std::string contradiction = "the program contradicts itself about the layout of its inputs";
  const std::string layout = "an array of its inputs is a tuple or not row-major";
  EXPECT_EQ(refused_inputs({parameter(1, 0, transposed)}, {row_major}), contradiction);
  EXPECT_EQ(refused_inputs({parameter(1, 0, kS32)}, {}), contradiction);
  EXPECT_EQ(refused_inputs({parameter(1, 0, transposed)}, {transposed}), layout);
  EXPECT_EQ(refused_inputs({parameter(1, 0, tuple)}, {tuple}), layout);

  const std::string text =
      module({computation(1, 7, {instruction(7, "copy", transposed)})}, 1, {}, transposed);
  const HloModule hlo(text);
  EXPECT_EQ(refusal([&] { hlo.output_shapes(); }),
            "an array of its outputs is a tuple or not row-major");
}

}  // namespace
}  // namespace cyxla::direct

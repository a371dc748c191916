// SPDX-License-Identifier: Apache-2.0
#include "direct/read/work.h"

#include <string>
#include <vector>

#include "direct/messages.h"

namespace cyxla::direct {
namespace {

using test::bytes;
using test::calls;
using test::computation;
using test::instruction;
using test::number;
using test::operands;
using test::packed;
using test::shape;

const std::string kArray = shape(ElementType::kF64, {100});

double work(const std::vector<std::string>& instructions,
            std::vector<std::string> computations = {}) {
  computations.push_back(computation(1, 10, instructions));
  const std::string text = test::module(computations, 1, {}, kArray);
  return HloModule(text).work();
}

TEST(Work, CountsElementsByWhatIsDoneToThem) {
  const double add = work({instruction(10, "add", kArray)});
  EXPECT_EQ(add, 100);
  EXPECT_EQ(work({instruction(10, "add", shape(ElementType::kC128, {100}))}), 4 * add);
  EXPECT_GT(work({instruction(10, "divide", kArray)}), add);
  EXPECT_GT(work({instruction(10, "sine", kArray)}), work({instruction(10, "divide", kArray)}));
  EXPECT_EQ(work({instruction(10, "bitcast", kArray), instruction(11, "parameter", kArray)}), 0);
}

TEST(Work, CountsTheInputOfAReduction) {
  const std::string sum =
      computation(2, 20, {instruction(20, "add", shape(ElementType::kF64, {}))});
  const std::string reduce =
      instruction(11, "reduce", shape(ElementType::kF64, {}), operands({10}) + calls({2}));
  EXPECT_EQ(work({instruction(10, "parameter", kArray), reduce}, {sum}), 100);
  const std::string window = bytes(15, bytes(1, number(1, 7)) + bytes(1, number(1, 2)));
  const std::string reduce_window =
      instruction(11, "reduce-window", kArray, operands({10}) + calls({2}) + window);
  EXPECT_EQ(work({instruction(10, "parameter", kArray), reduce_window}, {sum}), 100 * 7 * 2);
  // A window for each result, which may be few.
  const std::string few = instruction(11, "reduce-window", shape(ElementType::kF64, {20}),
                                      operands({10}) + calls({2}) + window);
  EXPECT_EQ(work({instruction(10, "parameter", kArray), few}, {sum}), 20 * 7 * 2);
  const std::string scatter =
      instruction(12, "select-and-scatter", kArray, operands({10, 11}) + calls({2}) + window);
  const std::string scattered = instruction(11, "parameter", shape(ElementType::kF64, {20}));
  EXPECT_EQ(work({instruction(10, "parameter", kArray), scattered, scatter}, {sum}), 20 * 7 * 2);
}

TEST(Work, CountsTheMultiplicationsOfAProduct) {
  const auto product = [](const std::string& lhs, const std::string& rhs,
                          const std::string& dimensions) {
    return work({instruction(10, "parameter", lhs), instruction(11, "parameter", rhs),
                 instruction(12, "dot", kArray, operands({10, 11}) + bytes(30, dimensions))});
  };
  const std::string plain = packed(1, {1}) + packed(2, {0});
  EXPECT_EQ(product(shape(ElementType::kF64, {4, 6}), shape(ElementType::kF64, {6, 8}), plain),
            4 * 6 * 8 / 4);
}

TEST(Work, MultipliesByTheTripsOfALoop) {
  const std::string body = computation(2, 20, {instruction(20, "add", kArray)});
  const double once = work({test::counted_loop(10, kArray, 1, 2)}, {body});
  EXPECT_GE(once, 100);
  EXPECT_EQ(work({test::counted_loop(10, kArray, 50, 2)}, {body}), once + 49 * 100);
  // Of unknown length: once.
  EXPECT_EQ(work({instruction(10, "while", kArray, calls({2}))}, {body}), once);
}

TEST(Work, TakesTheLongestBranch) {
  const std::string short_branch = computation(2, 20, {instruction(20, "add", kArray)});
  const std::string long_branch = computation(3, 30, {instruction(30, "sine", kArray)});
  const auto choice = [](const test::Numbers& branches) {
    return instruction(10, "conditional", kArray, calls(branches));
  };
  const std::vector<std::string> branches = {short_branch, long_branch};
  EXPECT_EQ(work({choice({2, 3})}, branches), work({choice({3, 3})}, branches));
  EXPECT_LT(work({choice({2, 2})}, branches), work({choice({2, 3})}, branches));
}

}  // namespace
}  // namespace cyxla::direct

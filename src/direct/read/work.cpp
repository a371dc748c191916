// SPDX-License-Identifier: Apache-2.0
#include "direct/read/work.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <string_view>

#include "direct/read/product.h"
#include "direct/read/tables.h"

namespace cyxla::direct {
namespace {

// Measured on kernels of XLA:CPU; a call of the mathematics library takes up to 30.
constexpr double kTranscendental = 15;
constexpr double kDivision = 4;
constexpr double kMultiplyAdd = 0.25;  // of a matrix product: its operands stay in registers
constexpr double kComparison = 4;      // of a sort
constexpr double kComplex = 4;
// A step: the call of a kernel and the start of its loop.
constexpr double kStep = 10;

bool is_one_of(std::string_view opcode, std::initializer_list<std::string_view> opcodes) {
  return std::find(opcodes.begin(), opcodes.end(), opcode) != opcodes.end();
}

// Instructions that only name memory, or that a fusion replaces by indices.
bool is_free(std::string_view opcode) {
  return is_one_of(opcode, {"parameter", "constant", "bitcast", "tuple", "get-tuple-element",
                            "broadcast", "iota", "reshape", "after-all", "opt-barrier"});
}

double weight(std::string_view opcode) {
  if (is_one_of(opcode, {"exponential", "exponential-minus-one", "log", "log-plus-one", "tanh",
                         "sine", "cosine", "tan", "atan2", "power", "cbrt", "erf", "logistic"})) {
    return kTranscendental;
  }
  return is_one_of(opcode, {"divide", "remainder", "sqrt", "rsqrt"}) ? kDivision : 1;
}

// The number of elements that a Window covers.
double window_elements(std::string_view bytes) {
  double elements = 1;
  const Message<proto::kWindow> window(bytes, Lenient());
  window.for_each("dimensions", [&](std::string_view one) {
    const Message<proto::kWindowDimension> dimension(one, Lenient());
    elements *= dimension.has("size") ? static_cast<double>(dimension.number("size")) : 1;
  });
  return elements;
}

double sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// The weighted number of elements that the instruction computes.
double computed(const Instruction& instruction, const Extent& result,
                const Surroundings& surroundings) {
  const std::string_view opcode = instruction.opcode;
  const std::span<const Extent> operands = surroundings.operands;
  // The work for each element, where the instruction calls a computation.
  const double called = std::max(1.0, sum(surroundings.called_work));
  double largest = result.num_elements;
  for (const Extent& operand : operands) {
    largest = std::max(largest, operand.num_elements);
  }
  if (opcode == "dot" && operands.size() == 2) {
    return kMultiplyAdd * product_of(instruction, operands[0], operands[1]).multiplications();
  }
  if (opcode == "convolution" && operands.size() == 2) {
    return kMultiplyAdd * result.num_elements * operands[1].num_elements;
  }
  if (opcode == "sort") {
    return kComparison * largest * std::log2(std::max(2.0, largest)) * called;
  }
  if (opcode == "reduce-window") {
    return result.num_elements * window_elements(instruction.window) * called;
  }
  if (opcode == "select-and-scatter" && operands.size() > 1) {  // a window for each scattered one
    return operands[1].num_elements * window_elements(instruction.window) * called;
  }
  if (is_one_of(opcode, {"reduce", "scatter", "map"})) {
    return largest * called;
  }
  return weight(opcode) * result.num_elements;
}

}  // namespace

double work_of(const Instruction& instruction, const Surroundings& surroundings) {
  const std::string_view opcode = instruction.opcode;
  if (is_free(opcode)) {
    return 0;
  }
  const std::span<const double> called = surroundings.called_work;
  if (opcode == "while") {
    return kStep + surroundings.trip_count * sum(called);
  }
  if (opcode == "conditional") {
    return kStep + (called.empty() ? 0 : *std::max_element(called.begin(), called.end()));
  }
  if (is_one_of(opcode, {"fusion", "call", "async-start"})) {
    return kStep + sum(called);
  }
  const Extent result = read_extent(instruction.shape);
  const bool is_complex =
      result.element_type == ElementType::kC64 || result.element_type == ElementType::kC128;
  return computed(instruction, result, surroundings) * (is_complex ? kComplex : 1);
}

}  // namespace cyxla::direct

// SPDX-License-Identifier: Apache-2.0
#include "check_plan.h"

#include <cstddef>
#include <variant>

#include "require.h"

namespace cyxla::fuzz {
namespace {

using direct::Allocation;

class PlanCheck {
 public:
  explicit PlanCheck(const direct::Plan& plan) : plan_(plan) {}

  void check_arrays(const direct::Expected& expected) const {
    require(plan_.inputs.size() == expected.input_bytes.size(), "number of inputs");
    require(plan_.outputs.size() == expected.output_bytes.size(), "number of outputs");
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
      require(allocation(plan_.inputs[i]).size_bytes == expected.input_bytes[i], "bytes of input");
    }
    for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
      const Allocation& output = allocation(plan_.outputs[i]);
      require(output.kind == Allocation::Kind::kOutput && output.number == i, "number of output");
      require(output.size_bytes == expected.output_bytes[i], "bytes of output");
    }
    for (const Allocation& one : plan_.allocations) {
      check(one, expected);
    }
  }

  void check(const direct::Steps& steps) const {
    for (const direct::Step& step : steps) {
      std::visit([this](const auto& what) { this->check(what); }, step.what);
    }
  }

 private:
  static void check(const Allocation& one, const direct::Expected& expected) {
    switch (one.kind) {
      case Allocation::Kind::kInput:
        require(one.number < expected.input_bytes.size(), "number of an input");
        break;
      case Allocation::Kind::kOutput:
        require(one.number < expected.output_bytes.size(), "number of an output");
        break;
      case Allocation::Kind::kConstant:
        require(one.bytes.size() == one.size_bytes, "bytes of a constant");
        break;
      case Allocation::Kind::kPrivate:
        break;
    }
    if (one.copied_input) {
      require(one.kind == Allocation::Kind::kOutput, "a copied input is not an output");
      require(*one.copied_input < expected.input_bytes.size(), "number of a copied input");
      require(expected.input_bytes[*one.copied_input] == one.size_bytes, "bytes of a copied input");
    }
  }

  void check(const direct::Slice& slice) const {
    const std::size_t whole_bytes = allocation(slice.allocation).size_bytes;
    require(slice.offset <= whole_bytes && slice.size_bytes <= whole_bytes - slice.offset,
            "a slice leaves its allocation");
  }

  void check(const direct::KernelStep& step) const {
    require(step.kernel < plan_.kernels.size(), "number of a kernel");
    for (const direct::Slice& slice : step.slices) {
      check(slice);
    }
  }

  void check(const direct::CopyStep& step) const {
    check(step.source);
    check(step.destination);
    const Allocation::Kind written = allocation(step.destination.allocation).kind;
    require(written != Allocation::Kind::kInput && written != Allocation::Kind::kConstant,
            "a copy writes what is read-only");
    if (step.dimensions.empty()) {
      require(step.source.size_bytes <= step.destination.size_bytes, "a copy leaves its slice");
      return;
    }
    std::size_t source_end = step.element_bytes;
    std::size_t destination_end = step.element_bytes;
    for (const direct::CopyStep::Dimension& dimension : step.dimensions) {
      require(dimension.size > 0, "a copy has an empty dimension");
      add_product(source_end, dimension.size - 1, dimension.source_stride_bytes);
      add_product(destination_end, dimension.size - 1, dimension.destination_stride_bytes);
    }
    require(source_end <= step.source.size_bytes, "a copy reads beyond its slice");
    require(destination_end <= step.destination.size_bytes, "a copy writes beyond its slice");
  }

  void check(const direct::WhileStep& step) const {
    check(step.condition_result);
    require(step.condition_result.size_bytes == 1, "a loop's condition is not one byte");
    check(step.condition);
    check(step.body);
  }

  void check(const direct::ConditionalStep& step) const {
    check(step.index);
    require(step.index.size_bytes == (step.is_predicate ? 1 : 4), "bytes of an index");
    require(step.branches.size() >= (step.is_predicate ? 2 : 1), "a conditional lacks branches");
    for (const direct::Steps& branch : step.branches) {
      check(branch);
    }
  }

  static void add_product(std::size_t& sum, std::size_t a, std::size_t b) {
    std::size_t product = 0;
    const bool overflows =
        __builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(sum, product, &sum);
    require(!overflows, "a copy is longer than memory");
  }

  const Allocation& allocation(std::size_t index) const {
    require(index < plan_.allocations.size(), "number of an allocation");
    return plan_.allocations[index];
  }

  const direct::Plan& plan_;
};

}  // namespace

void check_plan(const direct::Plan& plan, const direct::Expected& expected) {
  const PlanCheck check(plan);
  check.check_arrays(expected);
  check.check(plan.steps);
}

}  // namespace cyxla::fuzz

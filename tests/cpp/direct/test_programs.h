// SPDX-License-Identifier: Apache-2.0
// Kernels compiled for the tests and programs made of them by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "direct/plan.h"
#include "direct/refusal.h"

namespace cyxla::test {

// The object file made of kernels/<name>.c.
inline std::string kernel_object(const std::string& name) {
  std::string_view paths = CYXLA_TEST_KERNELS;
  while (!paths.empty()) {
    const std::string path(paths.substr(0, paths.find(':')));
    if (path.find("/" + name + ".c.") != std::string::npos) {
      std::ifstream file(path, std::ios::binary);
      return {std::istreambuf_iterator<char>(file), {}};
    }
    paths.remove_prefix(std::min(path.size() + 1, paths.size()));
  }
  throw std::runtime_error("no kernel object " + name);
}

// The reason of the Refusal that `function` must throw; a test failure otherwise.
template <typename Function>
std::string refusal_of(Function function) {
  try {
    function();
  } catch (const direct::Refusal& refusal) {
    return refusal.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

// Builds a plan over the kernels of arithmetic.c.
class PlanBuilder {
 public:
  PlanBuilder() { plan_.objects.push_back(kernel_object("arithmetic")); }

  direct::Slice input(std::size_t size_bytes) {
    plan_.inputs.push_back(plan_.allocations.size());
    return add(direct::Allocation::Kind::kInput, size_bytes, plan_.inputs.size() - 1);
  }
  direct::Slice output(std::size_t size_bytes) {
    plan_.outputs.push_back(plan_.allocations.size());
    return add(direct::Allocation::Kind::kOutput, size_bytes, plan_.outputs.size() - 1);
  }
  // An input and an output that share their memory.
  direct::Slice donated(std::size_t size_bytes) {
    const direct::Slice slice = output(size_bytes);
    plan_.allocations.back().copied_input = plan_.inputs.size();
    plan_.inputs.push_back(slice.allocation);
    return slice;
  }
  direct::Slice temporary(std::size_t size_bytes) {
    return add(direct::Allocation::Kind::kPrivate, size_bytes, 0);
  }
  template <typename Value>
  direct::Slice constant(std::initializer_list<Value> values) {
    const direct::Slice slice =
        add(direct::Allocation::Kind::kConstant, values.size() * sizeof(Value), 0);
    plan_.allocations.back().bytes.assign(reinterpret_cast<const char*>(values.begin()),
                                          slice.size_bytes);
    return slice;
  }

  direct::Step call(const std::string& kernel, std::vector<direct::Slice> slices) {
    plan_.kernels.push_back(kernel);
    return {direct::KernelStep{plan_.kernels.size() - 1, std::move(slices)}};
  }
  static direct::Step copy(direct::Slice source, direct::Slice destination) {
    direct::CopyStep step;
    step.source = source;
    step.destination = destination;
    return {step};
  }

  direct::Plan finish(direct::Steps steps) {
    plan_.steps = std::move(steps);
    return plan_;
  }

 private:
  direct::Slice add(direct::Allocation::Kind kind, std::size_t size_bytes, std::size_t number) {
    direct::Allocation allocation;
    allocation.kind = kind;
    allocation.size_bytes = size_bytes;
    allocation.number = number;
    plan_.allocations.push_back(allocation);
    return {plan_.allocations.size() - 1, 0, size_bytes};
  }

  direct::Plan plan_;
};

}  // namespace cyxla::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cyxla::direct {

// A block of memory that a program's kernels read or write.
struct Allocation {
  enum class Kind : std::uint8_t {
    kInput,     // the caller's, read only
    kOutput,    // the caller's, written
    kConstant,  // ours, filled once from `bytes`; kernels only read it
    kPrivate,   // ours, one per context: temporaries and tuple tables
  };
  Kind kind = Kind::kPrivate;
  std::size_t size_bytes = 0;
  std::size_t number = 0;  // which input or output
  // The donated input that is copied into an output before each run; the program overwrites it.
  std::optional<std::size_t> copied_input;
  std::string bytes;  // contents of a constant
};

// Part of an allocation. `allocation` is an index into Plan::allocations.
struct Slice {
  std::size_t allocation = 0;
  std::size_t offset = 0;
  std::size_t size_bytes = 0;
};

struct Step;
using Steps = std::vector<Step>;

// Calls a compiled function with one work group.
struct KernelStep {
  std::size_t kernel = 0;  // index into Plan::kernels
  // Arguments, then results, as in the call frame. The kernel of a whole loop lists inputs and
  // constants that it passes on among its results, and does not write to them.
  std::vector<Slice> slices;
};

// Copies elements from one layout to another, or plain bytes if both layouts are equal.
struct CopyStep {
  Slice source;
  Slice destination;
  struct Dimension {
    std::size_t size = 0;
    std::size_t source_stride_bytes = 0;
    std::size_t destination_stride_bytes = 0;
  };
  std::size_t element_bytes = 0;
  // The destination's slowest dimension first. If empty, source.size_bytes bytes are copied.
  std::vector<Dimension> dimensions;
};

// Repeats `body` `trip_count` times, or while the byte at `condition_result` is not 0 after
// `condition`.
struct WhileStep {
  Steps condition;
  Steps body;
  Slice condition_result;
  std::optional<std::uint64_t> trip_count;
};

// Runs one of `branches`. A predicate byte selects branch 0 for true and branch 1 for false. A
// 32-bit index out of range selects the last branch.
struct ConditionalStep {
  Slice index;
  bool is_predicate = false;
  std::vector<Steps> branches;
};

struct Step {
  std::variant<KernelStep, CopyStep, WhileStep, ConditionalStep> what;
  // For messages about loops and conditionals: the number of the step in the program, from 1,
  // including nested steps, and the name of its HLO instruction, which may be empty.
  std::size_t number = 0;
  std::string instruction;
};

// A program for direct calls. read_plan() makes it from the plugin's serialized executable, with
// every slice inside its allocation and every index in range.
struct Plan {
  std::vector<Allocation> allocations;
  std::vector<std::size_t> inputs;   // allocation of each input
  std::vector<std::size_t> outputs;  // allocation of each output
  std::vector<std::string> kernels;  // symbol of each compiled function
  std::vector<std::string> objects;  // ELF objects that define them
  Steps steps;                       // call steps are replaced by their steps
  // Whether a loop, in a step or inside a kernel, has no known trip count. It may run forever.
  bool has_unbounded_loop = false;
  double work = 0;  // HloModule::work()
};

}  // namespace cyxla::direct

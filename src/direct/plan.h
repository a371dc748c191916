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
    kConstant,  // ours, filled once from `bytes`; kernels do not write it
    kPrivate,   // ours, one per context: temporaries and tuple tables
  };
  Kind kind = Kind::kPrivate;
  std::size_t size_bytes = 0;
  std::size_t number = 0;  // which input or output
  // The input that an output is a copy of at first, as the program may overwrite it (donation).
  std::optional<std::size_t> copied_input;
  std::string bytes;  // contents of a constant
};

// Part of an allocation, an index into Plan::allocations.
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
  // Arguments, then results: the order of the call frame. The kernel of a whole loop lists inputs
  // and constants among its results, where it passes them on; it does not write them.
  std::vector<Slice> slices;
};

// Copies elements from one layout to another; plain bytes where both layouts are equal.
struct CopyStep {
  Slice source;
  Slice destination;
  struct Dimension {
    std::size_t size = 0;
    std::size_t source_stride_bytes = 0;
    std::size_t destination_stride_bytes = 0;
  };
  std::size_t element_bytes = 0;
  // The destination's slowest dimension first; empty: copy source.size_bytes bytes as they are.
  std::vector<Dimension> dimensions;
};

// Repeats `body`: `trip_count` times, or as long as the byte at `condition_result` is not 0 after
// `condition`.
struct WhileStep {
  Steps condition;
  Steps body;
  Slice condition_result;
  std::optional<std::uint64_t> trip_count;
};

// Runs one of `branches`. By a predicate byte: true is branch 0, false is branch 1; by a 32-bit
// index: out of range is the last branch.
struct ConditionalStep {
  Slice index;
  bool is_predicate = false;
  std::vector<Steps> branches;
};

struct Step {
  std::variant<KernelStep, CopyStep, WhileStep, ConditionalStep> what;
  // For messages about loops and conditionals: which step of the program it is, from 1, those
  // within others included, and the name of its HLO instruction, which may be empty.
  std::size_t number = 0;
  std::string instruction;
};

// A program as its kernels' caller needs it. Made by read_plan() from what the plugin serialized,
// checked throughout: every slice lies inside its allocation, every index is in range.
struct Plan {
  std::vector<Allocation> allocations;
  std::vector<std::size_t> inputs;   // allocation of each input
  std::vector<std::size_t> outputs;  // allocation of each output
  std::vector<std::string> kernels;  // symbol of each compiled function
  std::vector<std::string> objects;  // ELF objects that define them
  Steps steps;                       // calls are already in place of the call steps
  // Whether a loop, in a step or inside a kernel, has no known length: inputs may keep it going for
  // ever.
  bool has_unbounded_loop = false;
  double work = 0;  // as of HloModule
};

}  // namespace cyxla::direct

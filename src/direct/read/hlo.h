// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "direct/read/shape.h"

namespace cyxla::direct {

// The parts of an HLO instruction that cyxla reads. Views point into the serialized module.
struct Instruction {
  std::uint64_t id = 0;
  std::string_view opcode;
  std::string_view shape;                   // a ShapeProto
  std::optional<std::string_view> literal;  // a LiteralProto
  std::string_view backend_config;
  std::string_view window;          // a WindowProto
  std::string_view dot_dimensions;  // a DotDimensionNumbers
  std::uint64_t parameter_number = 0;
  std::uint64_t tuple_index = 0;
  std::vector<std::uint64_t> operands;
  std::vector<std::uint64_t> called_computations;
};

// A direct call of a longer loop saves nothing, and verifying it would take long.
constexpr std::uint64_t kMaxTripCount = 1'000'000;

// The optimized HLO module of an executable: its signature, and the instructions that define its
// buffers. The kernels hold the computation itself. The bytes must outlive the module. The
// constructor throws Refusal.
class HloModule {
 public:
  explicit HloModule(std::string_view bytes);

  // Each throws Refusal for a number without an instruction or computation.
  const Instruction& instruction(std::uint64_t id) const;
  const Instruction& root(std::uint64_t computation) const;
  const Instruction& entry_root() const { return root(entry_computation_); }

  // Whether a loop has no known trip count. The step list does not show all loops: a kernel may
  // hold a whole one.
  bool has_unbounded_loop() const noexcept { return has_unbounded_loop_; }
  // The sum of the known trip counts; a nested loop counts once for each trip of the outer one.
  // Infinite where it cannot be determined.
  double num_trips() const { return computation(entry_computation_).num_trips; }
  // The work of one execution, in the unit of work.h. A loop without a known trip count counts as
  // one trip, a conditional as its longest branch.
  double work() const { return computation(entry_computation_).work; }
  const std::unordered_map<std::uint64_t, Instruction>& instructions() const noexcept {
    return instructions_;
  }

  // The arrays of the signature. Throws Refusal where one is not row-major, as callers' arrays are.
  std::vector<Shape> input_shapes() const;
  std::vector<Shape> output_shapes() const;

 private:
  struct Computation {
    std::uint64_t root = 0;
    std::vector<std::uint64_t> parameters;  // ids of its parameter instructions
    double num_trips = 0;                   // including those of the computations that it calls
    double work = 0;                        // likewise
  };
  void read_computation(std::string_view bytes);
  std::uint64_t read_trip_count(const Instruction& loop);
  double trips_of(const Instruction& instruction, std::uint64_t trip_count) const;
  double work_of(const Instruction& instruction, std::uint64_t trip_count) const;
  const Computation& computation(std::uint64_t id) const;

  std::unordered_map<std::uint64_t, Instruction> instructions_;
  std::unordered_map<std::uint64_t, Computation> computations_;
  std::uint64_t entry_computation_ = 0;
  std::string_view program_shape_;
  bool has_unbounded_loop_ = false;
};

}  // namespace cyxla::direct

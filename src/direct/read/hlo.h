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

// What is needed of one HLO instruction. Views point into the serialized module.
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

// Longer loops gain nothing from a direct call, and the first calls would take long to verify.
constexpr std::uint64_t kMaxTripCount = 1'000'000;

// The optimized HLO module of an executable: its signature, and the instructions that buffers are
// named after. The kernels hold the computation itself. Its bytes must outlive it. The constructor
// throws Refusal.
class HloModule {
 public:
  explicit HloModule(std::string_view bytes);

  // Each throws Refusal where there is no such instruction or computation.
  const Instruction& instruction(std::uint64_t id) const;
  const Instruction& root(std::uint64_t computation) const;
  const Instruction& entry_root() const { return root(entry_computation_); }

  // Whether a loop's length is only known as it runs. The step list does not tell: a kernel may
  // hold whole loops.
  bool has_unbounded_loop() const noexcept { return has_unbounded_loop_; }
  // How often its loops of known length run their bodies, all together; a loop within another
  // counts as often as that one runs it. Infinite where that cannot be told.
  double num_trips() const { return computation(entry_computation_).num_trips; }
  // What one execution computes, as of work.h, were each loop of unknown length to run once and
  // each conditional the longest of its branches.
  double work() const { return computation(entry_computation_).work; }
  const std::unordered_map<std::uint64_t, Instruction>& instructions() const noexcept {
    return instructions_;
  }

  // One array for each input and output, row-major as the caller's are. Throws Refusal.
  std::vector<Shape> input_shapes() const;
  std::vector<Shape> output_shapes() const;

 private:
  struct Computation {
    std::uint64_t root = 0;
    std::vector<std::uint64_t> parameters;  // ids of its parameter instructions
    double num_trips = 0;                   // with those of the computations that it calls
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

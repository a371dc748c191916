// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace cyxla::direct {

// A value of the HLO module: an instruction, and the path into its shape where that is a tuple.
struct Location {
  std::uint64_t instruction = 0;
  std::vector<std::uint64_t> shape_index;

  bool operator<(const Location& other) const {
    return std::tie(instruction, shape_index) < std::tie(other.instruction, other.shape_index);
  }
};

// Where a value lies. Checked to be inside its allocation.
struct Place {
  std::size_t allocation = 0;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;

  bool operator==(const Place&) const = default;
};

// XLA's buffer assignment: the blocks of memory of a program, and which values lie where in them.
// The constructor throws Refusal.
class BufferAssignment {
 public:
  struct Allocation {
    std::uint64_t size_bytes = 0;
    bool is_thread_local = false;
    bool is_tuple = false;
    bool is_constant = false;
    bool is_live_out = false;
    bool is_aliased = false;  // an input whose memory the program gives to an output
    bool is_input = false;
    std::uint64_t input_number = 0;
    std::vector<std::uint64_t> buffers;  // ids of the values in it
  };

  explicit BufferAssignment(std::string_view bytes);

  const std::vector<Allocation>& allocations() const noexcept { return allocations_; }

  // Where a buffer was defined. Throws Refusal.
  const Location& definition(std::uint64_t buffer) const;

  // The place of a value; nothing for a value that the assignment does not name, such as one that
  // the module's root only passes on. Throws Refusal where it names several.
  std::optional<Place> place(const Location& location) const;

 private:
  struct Buffer {
    Location defined_at;
    std::uint64_t size_bytes = 0;
    std::optional<Place> place;
  };
  void read_buffer(std::string_view bytes);
  void read_alias(std::string_view bytes);
  void read_allocation(std::string_view bytes);
  void read_assigned(std::string_view bytes, Allocation& allocation);

  std::vector<Allocation> allocations_;
  std::unordered_map<std::uint64_t, Buffer> buffers_;
  std::map<Location, std::vector<std::uint64_t>> buffers_at_;
};

}  // namespace cyxla::direct

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

// A value of the HLO module: an instruction, and the index into its shape where that is a tuple.
struct Location {
  std::uint64_t instruction = 0;
  std::vector<std::uint64_t> shape_index;

  bool operator<(const Location& other) const {
    return std::tie(instruction, shape_index) < std::tie(other.instruction, other.shape_index);
  }
};

// The memory of a value, inside its allocation.
struct BufferSlice {
  std::size_t allocation = 0;  // index into allocations()
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;

  bool operator==(const BufferSlice&) const = default;
};

// XLA's buffer assignment: the allocations of a program, and the slices of them that hold its
// values. The constructor throws Refusal.
class BufferAssignment {
 public:
  struct Allocation {
    std::uint64_t size_bytes = 0;
    bool is_thread_local = false;
    bool is_tuple = false;
    bool is_constant = false;
    bool is_live_out = false;
    bool is_aliased = false;  // an input whose memory is also an output's
    bool is_input = false;
    std::uint64_t input_number = 0;
    std::vector<std::uint64_t> buffers;  // ids of the values in it
  };

  explicit BufferAssignment(std::string_view bytes);

  const std::vector<Allocation>& allocations() const noexcept { return allocations_; }

  // The value that defines a buffer of an allocation.
  const Location& definition(std::uint64_t buffer) const;

  // The slice of a value. The assignment names none for some values, such as those that the
  // module's root only passes on. Throws Refusal where it names several.
  std::optional<BufferSlice> slice(const Location& location) const;

 private:
  struct Buffer {
    Location defined_at;
    std::uint64_t size_bytes = 0;
    std::optional<BufferSlice> slice;
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

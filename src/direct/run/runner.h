// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "direct/load/executable.h"
#include "direct/load/kernel.h"
#include "direct/plan.h"

namespace cyxla::direct {

// The steps of a program, flattened into arrays, with the addresses of their arguments. Owned by a
// Context. Its Executable must outlive it. Used by one thread at a time.
class [[nodiscard]] Runner {
 public:
  // Whether to count the runs of each block, which costs a call each.
  enum class Counting : bool { kOff, kOn };

  // Throws std::bad_alloc. Every allocation needs an address before run().
  explicit Runner(const Executable& executable, Counting counting = Counting::kOff);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Sets the address of an allocation in the arguments of every step.
  void set_address(std::size_t allocation, void* address) noexcept {
    const Slot* const end = slots_.data() + first_slot_[allocation + 1];
    for (const Slot* slot = slots_.data() + first_slot_[allocation]; slot != end; ++slot) {
      slot->argument->data = static_cast<std::byte*>(address) + slot->offset;
    }
  }

  // Returns false when a kernel reports an error, or unbounded loops exceed limit_trips().
  [[nodiscard]] bool run() noexcept { return run(program_); }
  // Limits the trips of all unbounded loops together, from now on; before, they are unlimited.
  void limit_trips(std::uint64_t count) noexcept { trips_left_ = count; }
  // Whether a block of the executable's plan has run. Only with Counting::kOn.
  bool has_run(const Steps& block) const noexcept;

 private:
  static constexpr std::uint64_t kAnyNumber = std::numeric_limits<std::uint64_t>::max();
  // The argument of the first call of a counted block: a kernel of our own that counts.
  struct Count {
    std::uint64_t runs = 0;
    KernelArgument argument{&runs, sizeof(runs)};

    Count() = default;
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;
  };
  // A range of operations_.
  struct Block {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  enum class Kind : std::uint8_t { kCalls, kCopy, kLoop, kBranch };
  // A range of calls_, or one element (`begin`) of copies_, loops_ or branches_.
  struct Operation {
    Kind kind = Kind::kCalls;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  struct Call {
    KernelFunction* function;
    KernelCallFrame frame;
    std::size_t first_argument;
  };
  // Sources, destinations, conditions and indices are elements of arguments_.
  struct Copy {
    std::uint32_t source = 0;
    std::uint32_t destination = 0;
    std::size_t element_bytes = 0;
    std::vector<CopyStep::Dimension> dimensions;
  };
  struct Loop {
    Block condition;
    Block body;
    std::uint32_t condition_result = 0;
    bool is_counted = false;
    std::uint64_t trip_count = 0;
  };
  struct Branch {
    std::uint32_t index = 0;
    bool is_predicate = false;
    std::vector<Block> branches;
  };
  // An element of arguments_ with an address inside an allocation.
  struct Slot {
    KernelArgument* argument;
    std::size_t offset;
  };

  Block add(const Steps& steps, const Executable& executable);
  Operation add(const CopyStep& step);
  Operation add(const WhileStep& step, const Executable& executable);
  Operation add(const ConditionalStep& step, const Executable& executable);
  void add_call(const KernelStep& step, const Executable& executable);
  Operation add_count(const Steps& block);
  std::uint32_t add_argument(const Slice& slice);
  void finish(std::size_t num_allocations);

  [[nodiscard]] bool run(Block block) noexcept;
  [[nodiscard]] static bool run_calls(const Call* begin, const Call* end) noexcept;
  [[nodiscard]] bool run(const Loop& loop) noexcept;
  void run(const Copy& copy) noexcept;
  const Block& chosen(const Branch& branch) const noexcept;

  std::vector<KernelArgument> arguments_;
  std::vector<Operation> operations_;
  std::vector<Call> calls_;
  std::vector<Copy> copies_;
  std::vector<Loop> loops_;
  std::vector<Branch> branches_;
  std::vector<Slice> slices_;            // of each argument; empty after finish()
  std::vector<Slot> slots_;              // by allocation
  std::vector<std::size_t> first_slot_;  // by allocation: index into slots_
  Block program_;
  std::uint64_t trips_left_ = kAnyNumber;
  bool is_counting_ = false;
  std::unordered_map<const Steps*, Count> counts_;  // calls_ points to its elements
};

}  // namespace cyxla::direct

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

// The steps of a program, flattened into arrays, with the addresses that they work on. Owned by a
// Context, must not outlive its Executable, and is used by one thread at a time.
class Runner {
 public:
  // Whether the runs of each block are counted, which costs a call each.
  enum class Counting : bool { kOff, kOn };

  // Throws std::bad_alloc. Every allocation must be placed before run().
  explicit Runner(const Executable& executable, Counting counting = Counting::kOff);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Makes every step that uses an allocation use the memory at `address`.
  void place(std::size_t allocation, void* address) noexcept {
    const Slot* const end = slots_.data() + first_slot_[allocation + 1];
    for (const Slot* slot = slots_.data() + first_slot_[allocation]; slot != end; ++slot) {
      slot->argument->data = static_cast<std::byte*>(address) + slot->offset;
    }
  }

  // False when a kernel reports an error, or a loop of unknown length has used up limit_trips().
  bool run() noexcept { return run(program_); }
  // How many trips such loops may make from now on, all together. There is no limit before.
  void limit_trips(std::uint64_t count) noexcept { trips_left_ = count; }
  // Whether a block of the executable's plan was run: of a runner that counts.
  bool has_run(const Steps& block) const noexcept;

 private:
  static constexpr std::uint64_t kAnyNumber = std::numeric_limits<std::uint64_t>::max();
  // What a block that is counted calls first: a kernel of our own with the count as its argument.
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
  // An element of arguments_ that holds an address inside an allocation.
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

  bool run(Block block) noexcept;
  static bool run_calls(const Call* begin, const Call* end) noexcept;
  bool run(const Loop& loop) noexcept;
  void run(const Copy& copy) noexcept;
  const Block& chosen(const Branch& branch) const noexcept;

  std::vector<KernelArgument> arguments_;
  std::vector<Operation> operations_;
  std::vector<Call> calls_;
  std::vector<Copy> copies_;
  std::vector<Loop> loops_;
  std::vector<Branch> branches_;
  std::vector<Slice> slices_;            // of each argument, until all are there
  std::vector<Slot> slots_;              // by allocation
  std::vector<std::size_t> first_slot_;  // by allocation: index into slots_
  Block program_;
  std::uint64_t trips_left_ = kAnyNumber;
  bool is_counting_ = false;
  std::unordered_map<const Steps*, Count> counts_;  // calls_ has addresses of its elements
};

}  // namespace cyxla::direct

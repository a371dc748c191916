// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

#include "base/aligned_memory.h"
#include "pjrt/buffer.h"
#include "pjrt/client.h"
#include "pjrt/invocation.h"
#include "runtime/capabilities.h"
#include "runtime/signature.h"

namespace cyxla::runtime {

// How an input gets to the device on a client whose buffers alias host memory.
enum class InputPolicy {
  kCopy,  // through memory of our own
  kView,  // in place, once that is worth a view
  kKeep,  // in place at once: the caller keeps the array
};

// Everything that one thread needs to execute one program: views of the inputs it has seen, memory
// for those that must be copied, and the invocation. Owned by the program. Used by the thread that
// has in_use set.
class alignas(kAlignment) Context {
 public:
  // Throws std::bad_alloc.
  Context(const pjrt::Client& client, Capabilities capabilities, const Signature& signature,
          const pjrt::LoadedExecutable& executable);

  // Set while a call is in flight, on its own cache line: closing a program waits for it.
  std::atomic<bool> in_use{false};

  // Makes input `index` ready for the next run. Arrays that move among a few addresses need no new
  // view once each was seen.
  pjrt::Status bind_input(std::size_t index, const void* data, InputPolicy policy) noexcept;
  // Has the next run write output `index` to `destination` where the program takes destinations;
  // null drops the output. False with an ok status when memory ran out.
  bool bind_output(std::size_t index, void* destination, pjrt::Status& status) noexcept;
  // Executes and waits for the end. Outputs are there until finish().
  pjrt::Status run() noexcept { return invocation_.run(); }
  // Copies output `index` to `destination`.
  pjrt::Status read_output(std::size_t index, void* destination) noexcept;
  void finish() noexcept;

  // Destroys every buffer, before the client goes. The context is of no use afterwards.
  void close() noexcept;

 private:
  // Callers alternate between a few arrays, as solvers do that swap the old state with the new.
  static constexpr std::size_t kNumViews = 4;
  static constexpr std::size_t kNoArgument = static_cast<std::size_t>(-1);

  struct Input {
    pjrt::Shape shape;
    std::size_t size_bytes = 0;
    std::array<const void*, kNumViews> viewed = {};  // addresses behind `views`
    std::array<const void*, kNumViews> copied = {};  // addresses that were copied last
    std::array<pjrt::Buffer, kNumViews> views;
    std::size_t next_view = 0;
    std::size_t next_copied = 0;
    AlignedMemory staging;
    pjrt::Buffer staging_view;
  };
  struct Output {
    pjrt::Shape shape;
    std::size_t size_bytes = 0;
    std::size_t destination_argument = kNoArgument;
    pjrt::Buffer destination;
    AlignedMemory scratch;  // where an output goes that is dropped or whose memory is not aligned
  };

  pjrt::Status view_input(std::size_t index, const void* data) noexcept;
  pjrt::Status stage_input(Input& input, const void* data) noexcept;

  const pjrt::Client& client_;
  Capabilities capabilities_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  pjrt::Invocation invocation_;
};

}  // namespace cyxla::runtime

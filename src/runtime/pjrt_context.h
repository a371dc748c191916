// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

#include <array>
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

// Why an execution did not succeed: what it was doing ("reading output %zu"), and the plugin's
// status, which is ok when memory ran out.
struct Failure {
  const char* what = "";
  std::size_t index = 0;
  pjrt::Status status;
};

// What one thread needs to execute one program through PJRT_LoadedExecutable_Execute: views of the
// inputs it has seen, memory for those that must be copied, and the invocation. Owned by a Context
// and used by one thread at a time.
class [[nodiscard]] PjrtContext {
 public:
  // Throws std::bad_alloc.
  PjrtContext(const pjrt::Client& client, Capabilities capabilities, const Signature& signature,
              const pjrt::LoadedExecutable& executable);

  // Arguments as cyxla_api.execute. False after a failure; the outputs are undefined then.
  [[nodiscard]] bool execute(const cyxla_input* inputs, void* const* outputs, InputPolicy policy,
                             Failure& failure) noexcept;

  // Destroys every buffer, before the client goes. The context is of no use afterwards.
  void close() noexcept;

 private:
  // Makes input `index` ready for the next run. Arrays that move among a few addresses need no new
  // view once each was seen.
  pjrt::Status bind_input(std::size_t index, const void* data, InputPolicy policy) noexcept;
  // Has the next run write output `index` to `destination` where the program takes destinations;
  // null drops the output. A program may read an input after it wrote an output, so one that
  // overlaps an input is written elsewhere first. False with an ok status when memory ran out.
  [[nodiscard]] bool bind_output(std::size_t index, void* destination, const cyxla_input* inputs,
                                 pjrt::Status& status) noexcept;
  // Copies output `index` to `destination`.
  pjrt::Status read_output(std::size_t index, void* destination) noexcept;
  void finish() noexcept;

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

  bool overlaps_input(const Output& output, const void* destination,
                      const cyxla_input* inputs) const noexcept;
  pjrt::Status view_input(std::size_t index, const void* data) noexcept;
  pjrt::Status stage_input(Input& input, const void* data) noexcept;

  const pjrt::Client& client_;
  Capabilities capabilities_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<std::size_t> in_place_outputs_;
  pjrt::Invocation invocation_;
};

}  // namespace cyxla::runtime

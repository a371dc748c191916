// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pjrt/executable.h"
#include "pjrt/handle.h"

namespace cyxla::pjrt {

// The arguments and results of PJRT_LoadedExecutable_Execute, made once and reused by every
// execution. Borrows the executable and the argument buffers. One thread at a time.
class [[nodiscard]] Invocation {
 public:
  static constexpr std::size_t kAllArguments = static_cast<std::size_t>(-1);

  // Each execution forbids donating the first `num_not_donated` arguments, which callers own. Pass
  // 0 for a program known not to donate: the plugin looks up every forbidden index. Throws
  // std::bad_alloc.
  Invocation(const Api& api, const LoadedExecutable& executable, std::size_t num_arguments,
             std::size_t num_outputs, std::size_t num_not_donated = kAllArguments);
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;
  ~Invocation() { release_outputs(); }

  void set_argument(std::size_t index, PJRT_Buffer* buffer) noexcept { arguments_[index] = buffer; }

  // Executes and waits until the device is done with every input and output. After success the
  // outputs live until release_outputs(), which must be called before the next run. After a failure
  // there are none.
  Status run() noexcept;
  PJRT_Buffer* output(std::size_t index) const noexcept { return outputs_[index]; }
  void release_outputs() noexcept;

 private:
  // For plugins that do not give an event for the execution.
  Status await_outputs() noexcept;

  const Api* api_;
  PJRT_LoadedExecutable* executable_;
  std::vector<PJRT_Buffer*> arguments_;
  std::vector<PJRT_Buffer*> outputs_;
  std::vector<std::int64_t> non_donatable_;
};

}  // namespace cyxla::pjrt

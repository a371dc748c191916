// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pjrt/executable.h"
#include "pjrt/handle.h"

namespace cyxla::pjrt {

// The arguments and results of PJRT_LoadedExecutable_Execute, made once and used for many
// executions. Borrows the executable and the argument buffers. One thread at a time.
class [[nodiscard]] Invocation {
 public:
  static constexpr std::size_t kAllArguments = static_cast<std::size_t>(-1);

  // The first `num_not_donated` arguments belong to somebody else, so each execution forbids to
  // donate them. 0 where the program is known not to: the plugin looks every forbidden index up.
  // Throws std::bad_alloc.
  Invocation(const Api& api, const LoadedExecutable& executable, std::size_t num_arguments,
             std::size_t num_outputs, std::size_t num_not_donated = kAllArguments);
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;
  ~Invocation() { release_outputs(); }

  void set_argument(std::size_t index, PJRT_Buffer* buffer) noexcept { arguments_[index] = buffer; }

  // Executes and waits until the device is done with every input and output. On success the outputs
  // are there until release_outputs(), which must be called before the next run; after a failure
  // there are none.
  Status run() noexcept;
  PJRT_Buffer* output(std::size_t index) const noexcept { return outputs_[index]; }
  void release_outputs() noexcept;

 private:
  // For plugins that give no event of the execution itself.
  Status await_outputs() noexcept;

  const Api* api_;
  PJRT_LoadedExecutable* executable_;
  std::vector<PJRT_Buffer*> arguments_;
  std::vector<PJRT_Buffer*> outputs_;
  std::vector<std::int64_t> non_donatable_;
};

}  // namespace cyxla::pjrt

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include "base/floating_point.h"

namespace cyxla {

// Delays cancellation of the calling thread (pthread_cancel) until its first cancellation point
// after the scope: unwinding through a noexcept function or the plugin's frames ends the process.
// Owned by the scope; used by one thread.
class [[nodiscard]] NoCancellationScope {
 public:
  NoCancellationScope() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved_); }
  NoCancellationScope(const NoCancellationScope&) = delete;
  NoCancellationScope& operator=(const NoCancellationScope&) = delete;
  ~NoCancellationScope() { pthread_setcancelstate(saved_, nullptr); }

 private:
  int saved_ = PTHREAD_CANCEL_ENABLE;
};

// Surrounds everything that enters the plugin or waits for it.
class [[nodiscard]] PluginScope {
  NoCancellationScope no_cancellation_;
  PluginFloatingPointScope floating_point_;
};

}  // namespace cyxla

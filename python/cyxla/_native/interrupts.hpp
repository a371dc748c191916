// SPDX-License-Identifier: Apache-2.0
// Ctrl-C while the main thread waits for the plugin. Python's handler only notes the signal, and
// the plugin cannot be interrupted, so that a long wait looks as if Ctrl-C did nothing. For as long
// as such a wait lasts, a handler in front of Python's says at once that the signal is noted.
#pragma once

#include <Python.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string_view>

namespace cyxla::glue {

inline unsigned long main_thread = 0;  // as threading.get_ident() names it
// Of the wait in flight: what to say, null once it was said, and the handler that was there.
inline std::atomic<const char*> interrupt_notice{nullptr};
inline struct sigaction previous_interrupt_handler = {};

// Runs in a signal handler: only functions that POSIX allows there.
inline void note_interrupt(int number, siginfo_t* information, void* context) {
  const int error_before = errno;
  const char* const notice = interrupt_notice.exchange(nullptr);
  if (notice != nullptr) {
    const std::string_view text(notice);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  }
  errno = error_before;
  if ((previous_interrupt_handler.sa_flags & SA_SIGINFO) != 0) {
    previous_interrupt_handler.sa_sigaction(number, information, context);
  } else {
    previous_interrupt_handler.sa_handler(number);
  }
}

inline bool is_note_interrupt(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == note_interrupt;
}

inline std::int64_t coarse_milliseconds() {
  struct timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Whether waits of a kind may be long. Putting the handler in place and taking it away costs as
// much as a small execution, so an executable whose last call was short goes without.
struct WaitLength {
  bool is_long = true;
};

// One wait of the main thread, on its stack; of other threads nothing is done. Both functions need
// the GIL and never raise: Python raises what its own handler noted as soon as it runs again.
class InterruptibleWait {
 public:
  void begin(WaitLength& length, const char* notice) noexcept {
    if (PyThread_get_thread_ident() != main_thread) {
      return;
    }
    length_ = &length;
    start_ = coarse_milliseconds();
    if (length.is_long) {
      install(notice);
    }
  }

  void end() noexcept {
    if (length_ == nullptr) {
      return;
    }
    constexpr std::int64_t kLongMilliseconds = 50;
    length_->is_long = coarse_milliseconds() - start_ >= kLongMilliseconds;
    if (is_installed_) {
      struct sigaction current = {};
      sigaction(SIGINT, &previous_interrupt_handler, &current);
      if (!is_note_interrupt(current)) {  // a host callback has set another meanwhile
        sigaction(SIGINT, &current, nullptr);
      }
      interrupt_notice.store(nullptr);
    }
  }

 private:
  void install(const char* notice) noexcept {
    struct sigaction own = {};
    if (sigaction(SIGINT, nullptr, &own) != 0 ||
        is_note_interrupt(own) ||  // a wait within a host callback of another
        ((own.sa_flags & SA_SIGINFO) == 0 &&
         (own.sa_handler == SIG_DFL || own.sa_handler == SIG_IGN))) {
      return;
    }
    previous_interrupt_handler = own;
    interrupt_notice.store(notice);
    own.sa_flags |= SA_SIGINFO;
    own.sa_sigaction = note_interrupt;
    is_installed_ = sigaction(SIGINT, &own, nullptr) == 0;
  }

  WaitLength* length_ = nullptr;
  std::int64_t start_ = 0;
  bool is_installed_ = false;
};

}  // namespace cyxla::glue

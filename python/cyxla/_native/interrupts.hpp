// SPDX-License-Identifier: Apache-2.0
// Prints a notice on Ctrl-C while the main thread waits for the plugin, which cannot be
// interrupted. Python's handler only sets a flag, so without the notice Ctrl-C seems to have no
// effect. The handler here is installed before Python's during such a wait.
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

inline unsigned long main_thread = 0;  // its threading.get_ident()
// The notice of the current wait, null after it was printed, and the handler before ours.
inline std::atomic<const char*> interrupt_notice{nullptr};
inline struct sigaction previous_interrupt_handler = {};

// A signal handler, which may call only async-signal-safe functions.
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

// Whether the next wait may be long. Installing and removing the handler takes as long as a small
// execution, so an executable whose last call was short does not use it.
struct WaitLength {
  bool is_long = true;
};

// A wait of the main thread, on its stack; on other threads it has no effect. Both functions need
// the GIL and never raise: Python raises KeyboardInterrupt when it runs again.
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
      if (!is_note_interrupt(current)) {  // a host callback has installed another handler
        sigaction(SIGINT, &current, nullptr);
      }
      interrupt_notice.store(nullptr);
    }
  }

 private:
  void install(const char* notice) noexcept {
    struct sigaction own = {};
    if (sigaction(SIGINT, nullptr, &own) != 0 ||
        is_note_interrupt(own) ||  // nested: a wait in a host callback
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

// SPDX-License-Identifier: Apache-2.0
#include "runtime/error_log.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>

namespace cyxla::runtime {
namespace {

// A fixed text, so that recording a failure needs no memory.
class Message {
 public:
  void format(const char* format, std::va_list arguments) noexcept {
    const int written = std::vsnprintf(text_.data(), text_.size(), format, arguments);
    length_ = written < 0 ? 0 : std::min(static_cast<std::size_t>(written), text_.size() - 1);
  }
  std::string_view view() const noexcept { return {text_.data(), length_}; }

 private:
  std::array<char, kMessageSize> text_ = {};
  std::size_t length_ = 0;
};

struct ProcessLog {
  std::mutex mutex;
  std::uint64_t count = 0;
  Message last;
};

// Never destroyed: threads may fail while the process exits.
ProcessLog& process_log() noexcept {
  alignas(ProcessLog) static unsigned char storage[sizeof(ProcessLog)];
  static auto* log = new (storage) ProcessLog;
  return *log;
}

// No thread records an error while the process forks: the child would find the lock taken for ever.
[[maybe_unused]] const int kForkHandlers =
    pthread_atfork([] { process_log().mutex.lock(); }, [] { process_log().mutex.unlock(); },
                   [] { process_log().mutex.unlock(); });

thread_local Message thread_message;
thread_local ErrorCode thread_code = ErrorCode::kInternal;

}  // namespace

void record_error(ErrorCode code, const char* format, ...) noexcept {
  thread_code = code;
  std::va_list arguments;
  va_start(arguments, format);
  thread_message.format(format, arguments);
  va_end(arguments);
  ProcessLog& log = process_log();
  const std::lock_guard lock(log.mutex);
  ++log.count;
  log.last = thread_message;
}

std::size_t last_error(char* buffer, std::size_t size) noexcept {
  const std::string_view message = thread_message.view();
  if (buffer != nullptr && size > 0) {
    const std::size_t length = std::min(message.size(), size - 1);
    std::memcpy(buffer, message.data(), length);
    buffer[length] = '\0';
  }
  return message.size();
}

ErrorCode last_error_code() noexcept { return thread_code; }

ErrorInfo error_info() {
  ProcessLog& log = process_log();
  const std::lock_guard lock(log.mutex);
  return {log.count, std::string(log.last.view())};
}

}  // namespace cyxla::runtime

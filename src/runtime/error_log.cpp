// SPDX-License-Identifier: Apache-2.0
#include "runtime/error_log.h"

#include <cyxla/cyxla.h>
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

// The public header's codes are those of ErrorCode.
#define CYXLA_SAME_CODE(name, code) \
  static_assert(static_cast<int>(CYXLA_ERROR_##name) == static_cast<int>(ErrorCode::code))
CYXLA_SAME_CODE(INTERNAL, kInternal);
CYXLA_SAME_CODE(ARGUMENT, kArgument);
CYXLA_SAME_CODE(PLUGIN, kPlugin);
CYXLA_SAME_CODE(COMPILE, kCompile);
CYXLA_SAME_CODE(EXECUTION, kExecution);
CYXLA_SAME_CODE(UNSUPPORTED, kUnsupported);
CYXLA_SAME_CODE(SHUTDOWN, kShutdown);
CYXLA_SAME_CODE(FORK, kFork);
#undef CYXLA_SAME_CODE
static_assert(CYXLA_ERROR_NONE == decltype(ThreadState::code){}, "a thread that never failed");

constexpr std::string_view kNoMemory =
    "out of memory: a call of this thread failed, and its message could not be kept; error_info() "
    "has the last message of the process";
constexpr std::string_view kThreadEnds =
    "this thread is ending, so it cannot execute programs and keeps no message; execute before its "
    "thread-specific data is destroyed; error_info() has the last message of the process";

struct ProcessLog {
  std::mutex mutex;
  std::uint64_t count = 0;
  std::size_t message_size = 0;
  std::array<char, kMessageSize> message = {};
};

// Never destroyed: threads may fail while the process exits.
ProcessLog& process_log() noexcept {
  alignas(ProcessLog) static unsigned char storage[sizeof(ProcessLog)];
  static auto* log = new (storage) ProcessLog;
  return *log;
}

// No thread records an error while the process forks: the child would find the lock taken forever.
[[maybe_unused]] const int kForkHandlers =
    pthread_atfork([] { process_log().mutex.lock(); }, [] { process_log().mutex.unlock(); },
                   [] { process_log().mutex.unlock(); });

std::size_t format_message(std::array<char, kMessageSize>& message, const char* format,
                           std::va_list arguments) noexcept {
  const int written = std::vsnprintf(message.data(), message.size(), format, arguments);
  return written < 0 ? 0 : std::min(static_cast<std::size_t>(written), message.size() - 1);
}

std::string_view thread_message() noexcept {
  if (thread_state.lacks_message) {
    return thread_state.has_ended ? kThreadEnds : kNoMemory;
  }
  const ThreadFailures* const failures = thread_state.failures;
  return failures == nullptr ? std::string_view()
                             : std::string_view(failures->message.data(), failures->message_size);
}

}  // namespace

void record_error(ErrorCode code, const char* format, ...) noexcept {
  ThreadFailures* const failures = thread_failures();
  thread_state.code = static_cast<std::uint8_t>(code);
  thread_state.lacks_message = failures == nullptr;
  std::array<char, kMessageSize> on_stack;
  std::array<char, kMessageSize>& message = failures == nullptr ? on_stack : failures->message;
  std::va_list arguments;
  va_start(arguments, format);
  const std::size_t size = format_message(message, format, arguments);
  va_end(arguments);
  if (failures != nullptr) {
    failures->message_size = size;
  }
  ProcessLog& log = process_log();
  const std::lock_guard lock(log.mutex);
  ++log.count;
  log.message_size = size;
  std::memcpy(log.message.data(), message.data(), size);
}

std::size_t last_error(char* buffer, std::size_t size) noexcept {
  const std::string_view message = thread_message();
  if (buffer != nullptr && size > 0) {
    buffer[message.copy(buffer, size - 1)] = '\0';
  }
  return message.size();
}

ErrorCode last_error_code() noexcept {
  return thread_state.code == CYXLA_ERROR_NONE ? ErrorCode::kInternal
                                               : static_cast<ErrorCode>(thread_state.code);
}

std::int32_t last_error_number() noexcept { return thread_state.code; }

void clear_error() noexcept {
  thread_state.code = CYXLA_ERROR_NONE;
  thread_state.lacks_message = false;
  if (thread_state.failures != nullptr) {
    thread_state.failures->message_size = 0;
  }
}

ErrorInfo error_info() {
  ProcessLog& log = process_log();
  const std::lock_guard lock(log.mutex);
  return {log.count, std::string(log.message.data(), log.message_size)};
}

}  // namespace cyxla::runtime

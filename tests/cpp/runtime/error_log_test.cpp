// SPDX-License-Identifier: Apache-2.0
#include "runtime/error_log.h"

#include <cyxla/cyxla.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace cyxla::runtime {
namespace {

// Runs each of these in its own thread, which starts without a message.
template <typename Function>
void in_thread(Function function) {
  std::thread(function).join();
}

TEST(ErrorLog, AThreadThatNeverFailedHasNoMessage) {
  in_thread([] {
    std::array<char, 4> text = {'x', 'x', 'x', 'x'};
    EXPECT_EQ(last_error(text.data(), text.size()), 0U);
    EXPECT_STREQ(text.data(), "");
    EXPECT_EQ(last_error(nullptr, 0), 0U);
    EXPECT_EQ(last_error_code(), ErrorCode::kInternal);
  });
}

TEST(ErrorLog, KeepsTheLastMessageAndItsKind) {
  in_thread([] {
    record_error(ErrorCode::kFork, "first");
    record_error(ErrorCode::kArgument, "%s %d", "second", 2);
    std::array<char, 64> text = {};
    EXPECT_EQ(last_error(text.data(), text.size()), 8U);
    EXPECT_STREQ(text.data(), "second 2");
    EXPECT_EQ(last_error_code(), ErrorCode::kArgument);
  });
}

TEST(ErrorLog, ClearingForgetsThisThreadsFailureOnly) {
  in_thread([] {
    EXPECT_EQ(last_error_number(), CYXLA_ERROR_NONE);
    clear_error();  // nothing to clear
    record_error(ErrorCode::kExecution, "burnt");
    EXPECT_EQ(last_error_number(), CYXLA_ERROR_EXECUTION);
    const std::uint64_t count = error_info().count;
    std::thread([] {
      record_error(ErrorCode::kFork, "theirs");
      clear_error();
      EXPECT_EQ(last_error_number(), CYXLA_ERROR_NONE);
    }).join();
    EXPECT_EQ(last_error_number(), CYXLA_ERROR_EXECUTION);
    clear_error();
    std::array<char, 8> text = {'x'};
    EXPECT_EQ(last_error(text.data(), text.size()), 0U);
    EXPECT_STREQ(text.data(), "");
    EXPECT_EQ(last_error_number(), CYXLA_ERROR_NONE);
    EXPECT_EQ(error_info().count, count + 1);
    EXPECT_EQ(error_info().message, "theirs");
    record_error(ErrorCode::kShutdown, "again");
    EXPECT_EQ(last_error(nullptr, 0), 5U);
    EXPECT_EQ(last_error_number(), CYXLA_ERROR_SHUTDOWN);
  });
}

TEST(ErrorLog, MessagesAreCutToTheBufferAndTheirWholeLengthReturned) {
  in_thread([] {
    record_error(ErrorCode::kInternal, "abcdef");
    std::array<char, 8> text = {};
    text.fill('#');
    EXPECT_EQ(last_error(text.data(), 0), 6U);
    EXPECT_EQ(text[0], '#');
    EXPECT_EQ(last_error(text.data(), 4), 6U);
    EXPECT_STREQ(text.data(), "abc");
    EXPECT_EQ(text[4], '#');
    EXPECT_EQ(last_error(text.data(), 7), 6U);
    EXPECT_STREQ(text.data(), "abcdef");
    EXPECT_EQ(last_error(nullptr, 100), 6U);
  });
}

TEST(ErrorLog, LongMessagesAreCutToTheSizeThatIsKept) {
  in_thread([] {
    record_error(ErrorCode::kInternal, "%s", std::string(5000, 'a').c_str());
    std::vector<char> text(6000, '#');
    EXPECT_EQ(last_error(text.data(), text.size()), kMessageSize - 1);
    EXPECT_EQ(std::string(text.data()), std::string(kMessageSize - 1, 'a'));
    EXPECT_EQ(error_info().message, std::string(kMessageSize - 1, 'a'));
  });
}

TEST(ErrorLog, EachThreadHasItsOwnMessage) {
  record_error(ErrorCode::kInternal, "mine");
  in_thread([] { record_error(ErrorCode::kInternal, "theirs"); });
  std::array<char, 64> text = {};
  last_error(text.data(), text.size());
  EXPECT_STREQ(text.data(), "mine");
}

TEST(ErrorLog, TheProcessCountsEveryFailureAndKeepsTheLast) {
  const std::uint64_t before = error_info().count;
  constexpr int kThreads = 4;
  constexpr int kFailures = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < kFailures; ++i) {
        record_error(ErrorCode::kInternal, "thread %d failure %d", t, i);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const ErrorInfo info = error_info();
  EXPECT_EQ(info.count - before, std::uint64_t{kThreads * kFailures});
  EXPECT_TRUE(info.message.starts_with("thread ") && info.message.ends_with(" failure 499"))
      << info.message;
}

// Another library's thread-specific data may fail after cyxla's own was destroyed.
TEST(ErrorLog, AFailureOfAThreadThatIsEndingIsCountedAndSaysSo) {
  static std::string message;
  static std::size_t failures_at_the_end = 0;
  static ErrorCode code = ErrorCode::kInternal;
  pthread_key_t key = {};  // created after cyxla's, so its destructor runs later
  ASSERT_EQ(pthread_key_create(&key,
                               [](void* /*set*/) {
                                 failures_at_the_end = last_error(nullptr, 0);
                                 record_error(ErrorCode::kArgument, "late");
                                 std::array<char, 400> text = {};
                                 last_error(text.data(), text.size());
                                 message = text.data();
                                 code = last_error_code();
                               }),
            0);
  const std::uint64_t before = error_info().count;
  in_thread([&] {
    ASSERT_EQ(pthread_setspecific(key, &message), 0);
    record_error(ErrorCode::kInternal, "early");
  });
  pthread_key_delete(key);
  EXPECT_EQ(error_info().count, before + 2);
  EXPECT_EQ(error_info().message, "late");
  EXPECT_EQ(failures_at_the_end, 0U);
  EXPECT_EQ(code, ErrorCode::kArgument);
  EXPECT_EQ(message,
            "this thread is ending, so it cannot execute programs and keeps no message; execute "
            "before its thread-specific data is destroyed; error_info() has the last message of "
            "the process");
}

}  // namespace
}  // namespace cyxla::runtime

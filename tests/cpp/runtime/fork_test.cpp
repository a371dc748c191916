// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/child_process.h"
#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::in_child;
using test::last_message;
using test::ProgramReference;

constexpr const char* kReason =
    ": this process was forked after the runtime was loaded, and the plugin's threads exist only "
    "in the parent; start worker processes with multiprocessing.get_context(\"spawn\") or "
    "\"forkserver\", or fork before the first use of cyxla";

class ForkTest : public test::RuntimeTest {
 protected:
  static std::string run(const cyxla_program_spec& spec) {
    float result = 0;
    void* const outputs[] = {&result};
    if (execute(&spec, nullptr, outputs, 1) != 0) {
      return last_message();
    }
    return result == 4 ? "executed" : "wrong result";
  }
};

TEST_F(ForkTest, AForkedChildMayNotExecute) {
  const ProgramReference program = compile("output F32[] fill 4\n");
  EXPECT_EQ(run(program->spec()), "executed");
  EXPECT_EQ(in_child([&] {
              const std::uint64_t calls = fake.all_calls();
              const std::string message = run(program->spec());
              return fake.all_calls() == calls && last_error_code() == ErrorCode::kFork
                         ? message
                         : "the plugin was called: " + message;
            }),
            std::string("cannot execute the program f") + kReason);
  EXPECT_EQ(run(program->spec()), "executed");  // the parent still works
}

TEST_F(ForkTest, AForkedChildMayNotPrepareOrCall) {
  const ProgramReference program = compile("output F32[] fill 4\n");
  float result = 0;
  void* const outputs[] = {&result};
  cyxla_call* prepared = prepare(&program->spec(), nullptr, outputs, 1);
  ASSERT_NE(prepared, nullptr);
  ASSERT_EQ(call(prepared), 0);
  EXPECT_EQ(in_child([&]() -> std::string {
              const std::uint64_t calls = fake.all_calls();
              if (prepare(&program->spec(), nullptr, outputs, 1) != nullptr ||
                  call(prepared) != -1 || !Runtime::forked()) {
                return "not refused";
              }
              const std::string message = last_message();
              discard(prepared);
              return fake.all_calls() == calls ? message : "the plugin was called";
            }),
            std::string("cannot execute the program f") + kReason);
  EXPECT_EQ(call(prepared), 0);
  discard(prepared);
}

TEST_F(ForkTest, AForkedChildMayNotCompileOrRegister) {
  loaded();
  EXPECT_EQ(in_child([&] {
              return test::message_of(ErrorCode::kFork, [&] { compile("output F32[] fill 4\n"); });
            }),
            std::string("cannot compile") + kReason);
  EXPECT_EQ(in_child([&] {
              return test::message_of(ErrorCode::kFork,
                                      [&] { loaded().register_ffi_handler("t", "Host", nullptr); });
            }),
            std::string("cannot register a custom-call target") + kReason);
}

// The plugin's objects belong to the parent: the child destroys none.
TEST_F(ForkTest, AForkedChildLeavesThePluginAlone) {
  ProgramReference program = compile("output F32[] fill 4\n");
  EXPECT_EQ(in_child([&]() -> std::string {
              const std::uint64_t calls = fake.all_calls();
              program.reset();
              Runtime::shut_down();
              return fake.all_calls() == calls ? "left alone" : "called";
            }),
            "left alone");
  EXPECT_EQ(run(program->spec()), "executed");
}

TEST_F(ForkTest, AChildForkedBeforehandMayDoAll) {
  EXPECT_EQ(in_child([&] {
              std::string message = run(compile("output F32[] fill 4\n")->spec());
              Runtime::shut_down();
              return message;
            }),
            "executed");
  EXPECT_EQ(run(compile("output F32[] fill 4\n")->spec()), "executed");
}

// A child that was forked while another thread recorded a failure must not wait for that thread.
TEST_F(ForkTest, AForkWhileAnotherThreadFails) {
  const ProgramReference program = compile("output F32[] fill 4\n");
  std::atomic<bool> stop = false;
  std::thread failing([&] {
    while (!stop) {
      static_cast<void>(execute(nullptr, nullptr, nullptr, 0));
    }
  });
  std::string message = std::string("cannot execute the program f") + kReason;
  for (int i = 0; i < 50 && message == std::string("cannot execute the program f") + kReason; ++i) {
    message = in_child([&] { return run(program->spec()); }, std::chrono::seconds(5));
  }
  EXPECT_EQ(message, std::string("cannot execute the program f") + kReason);
  stop = true;
  failing.join();
}

}  // namespace
}  // namespace cyxla::runtime

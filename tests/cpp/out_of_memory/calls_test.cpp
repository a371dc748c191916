// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "out_of_memory/out_of_memory.h"

namespace cyxla::runtime {
namespace {

using test::Array;
using test::FailingMemory;
using test::last_message;
using test::OutOfMemoryTest;
using test::ProgramReference;
using test::SampleCall;

TEST_F(OutOfMemoryTest, FirstExecute) {
  loaded();
  compile(SampleCall::kCode).reset();  // allocates what is kept
  ASSERT_EQ(call_.run(compile(SampleCall::kCode)->spec(), 1), "");
  for (const int zero_copy : {0, 1}) {
    ProgramReference program;
    std::int64_t before = 0;
    std::set<std::int64_t> blocks;  // counts after a program's first successful call
    sweep("first_execute",
          {.before =
               [&] {
                 before = FailingMemory::blocks();
                 program = compile(SampleCall::kCode);
               },
           .act =
               [&] {
                 return execute(&program->spec(), call_.inputs.data(), call_.outputs.data(),
                                zero_copy) == 0;
               },
           .check = [&] { return call_.check(); },
           .after =
               [&] {
                 blocks.insert(FailingMemory::blocks() - before);
                 program.reset();
               }},
          7);
    EXPECT_EQ(blocks.size(), 1U) << "a failed first call leaves something behind";
  }
}

TEST_F(OutOfMemoryTest, ExecuteAgain) {
  const ProgramReference program = compile(SampleCall::kCode);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(call_.run(program->spec(), 1), "");  // makes the views
  }
  sweep("execute",
        {.act =
             [&] {
               return execute(&program->spec(), call_.inputs.data(), call_.outputs.data(), 1) == 0;
             },
         .check = [&] { return call_.check(); }},
        0);
}

// An output with a destination is written elsewhere when it is dropped or not aligned.
TEST_F(OutOfMemoryTest, OutputsInPlace) {
  constexpr const char* kInPlace =
      "# tf.aliasing_output\n"
      "input F32[4]\n"
      "input F32[4]\n"
      "output F32[4] scale 0 3 into 1\n";
  Signature signature = test::signature_of(kInPlace);
  signature.inputs.pop_back();
  signature.in_place_outputs = {0};
  loaded();
  const Array<float> input({1, 2, 3, 4});
  const std::vector<cyxla_input> inputs{input.input(PJRT_Buffer_Type_F32)};
  const Array<float> tripled({0, 0, 0, 0}, 4);
  void* const outputs[] = {tripled.data()};
  ProgramReference program;
  sweep(
      "in_place",
      {.before = [&] { program = loaded().compile(test::request_of(kInPlace, signature)).program; },
       .act = [&] { return execute(&program->spec(), inputs.data(), outputs, 1) == 0; },
       .check = [&]() -> std::string {
         return tripled.values() == std::vector<float>{3, 6, 9, 12} ? "" : "wrong results";
       },
       .after = [&] { program.reset(); }},
      5);
}

TEST_F(OutOfMemoryTest, PreparedCall) {
  const ProgramReference program = compile(SampleCall::kCode);
  sweep("prepared_call",
        {.act =
             [&] {
               cyxla_call* prepared =
                   prepare(&program->spec(), call_.inputs.data(), call_.outputs.data(), 1);
               if (prepared == nullptr) {
                 return false;
               }
               const bool succeeded = call(prepared) == 0;
               discard(prepared);
               return succeeded;
             },
         .check = [&] { return call_.check(); }},
        8);
}

TEST_F(OutOfMemoryTest, Release) {
  ProgramReference first = compile(SampleCall::kCode);
  FailingMemory::fail(1);  // what a first release may need was allocated earlier
  first.reset();
  EXPECT_FALSE(FailingMemory::failed());
  FailingMemory::fail(0);
  ProgramReference program;
  sweep("release",
        {.before = [&] { program = compile(SampleCall::kCode); },
         .act =
             [&] {
               program.reset();
               return true;
             }},
        0);
}

// A thread's first call also assigns its slot.
TEST_F(OutOfMemoryTest, FirstCallOfAThread) {
  const ProgramReference program = compile(SampleCall::kCode);
  int positions = 0;
  std::vector<std::thread> alive;  // keeps every slot in use, so that each thread needs a new one
  std::atomic<bool> done = false;
  for (bool failed = true; failed && !HasFailure();) {
    std::atomic<bool> finished = false;
    alive.emplace_back([&, nth = positions + 1] {
      SampleCall own;
      FailingMemory::fail(nth);
      const int result = execute(&program->spec(), own.inputs.data(), own.outputs.data(), 1);
      failed = FailingMemory::failed();
      FailingMemory::fail(0);
      EXPECT_EQ(result, failed ? -1 : 0);
      if (failed) {
        EXPECT_EQ(last_message(), "cannot execute the program f: out of memory");
        EXPECT_EQ(last_error_code(), ErrorCode::kInternal);
      }
      EXPECT_EQ(own.run(program->spec(), 1), "") << nth;
      finished = true;
      finished.notify_one();
      done.wait(false);
    });
    finished.wait(false);
    positions += failed ? 1 : 0;
  }
  done = true;
  done.notify_all();
  for (std::thread& thread : alive) {
    thread.join();
  }
  std::printf(
      "faults: first_call_of_a_thread_without_memory: %d positions, %d reported, 0 tolerated\n",
      positions, positions);
  EXPECT_GE(positions, 9);
}

// A thread's first failure cannot allocate its message: it is still counted, and the process keeps
// the message.
TEST_F(OutOfMemoryTest, FirstFailureOfAThread) {
  const std::uint64_t before = error_info().count;
  std::thread([] {
    FailingMemory::fail(1);
    EXPECT_EQ(execute(nullptr, nullptr, nullptr, 0), -1);
    EXPECT_TRUE(FailingMemory::failed());
    FailingMemory::fail(0);
    EXPECT_EQ(last_message(),
              "out of memory: a call of this thread failed, and its message could not be kept; "
              "error_info() has the last message of the process");
    EXPECT_EQ(last_error_code(), ErrorCode::kArgument);
    EXPECT_EQ(error_info().message, "the program spec is NULL; get one from program_spec()");
    EXPECT_EQ(execute(nullptr, nullptr, nullptr, 0), -1);
    EXPECT_EQ(last_message(), "the program spec is NULL; get one from program_spec()");
  }).join();
  EXPECT_EQ(error_info().count, before + 2);
}

}  // namespace
}  // namespace cyxla::runtime

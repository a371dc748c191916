// SPDX-License-Identifier: Apache-2.0
#include "pjrt/event.h"

#include <gtest/gtest.h>

#include <chrono>

#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

class EventTest : public test::PjrtTest {
 protected:
  // Returns the event that completes with the buffer's contents.
  Event ready_event(const Buffer& buffer) {
    CYXLA_PJRT_ARGS(PJRT_Buffer_ReadyEvent, args);
    args.buffer = buffer.get();
    EXPECT_TRUE(api().call(CYXLA_SLOT(PJRT_Buffer_ReadyEvent), args).ok());
    return {api(), args.event};
  }
  Buffer buffer() { return copy<float>(PJRT_Buffer_Type_F32, {1}, {1}); }
};

TEST_F(EventTest, ACompleteEventIsSuccess) {
  const Buffer copied = buffer();
  const Event event = ready_event(copied);
  EXPECT_TRUE(await(api(), event).ok());
  EXPECT_TRUE(await(api(), event).ok());  // an event may be awaited again
}

TEST_F(EventTest, AnEventGivesTheErrorItCompletedWith) {
  const Buffer copied = buffer();
  fake.fail_event("PJRT_Buffer_ReadyEvent", 1, PJRT_Error_Code_DATA_LOSS, "lost");
  const Event event = ready_event(copied);
  for (int i = 0; i < 2; ++i) {
    const Status status = await(api(), event);
    EXPECT_EQ(status.code(), PJRT_Error_Code_DATA_LOSS);
    EXPECT_EQ(status.message(), "lost");
  }
}

TEST_F(EventTest, AFailingAwaitIsAnError) {
  const Buffer copied = buffer();
  const Event event = ready_event(copied);
  fake.fail("PJRT_Event_Await", 1, PJRT_Error_Code_CANCELLED, "no patience");
  EXPECT_EQ(await(api(), event).message(), "no patience");
}

TEST_F(EventTest, AwaitWaitsForTheWork) {
  constexpr std::chrono::microseconds kDelay(30000);
  fake.set(FAKE_PLUGIN_ASYNCHRONOUS, 1);
  fake.set(FAKE_PLUGIN_DELAY_US, kDelay.count());
  const auto start = std::chrono::steady_clock::now();
  const Buffer copied = buffer();  // copy_from_host waits for the end of the transfer
  EXPECT_GE(std::chrono::steady_clock::now() - start, kDelay);
}

}  // namespace
}  // namespace cyxla::pjrt

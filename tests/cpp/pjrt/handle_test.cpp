// SPDX-License-Identifier: Apache-2.0
#include "pjrt/handle.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

static_assert(!std::is_copy_constructible_v<Buffer>);
static_assert(!std::is_copy_assignable_v<Buffer>);
static_assert(std::is_nothrow_move_constructible_v<Buffer>);
static_assert(std::is_nothrow_move_assignable_v<Buffer>);

class HandleTest : public test::PjrtTest {
 protected:
  Buffer buffer() { return copy<float>(PJRT_Buffer_Type_F32, {2}, {1, 2}); }
  std::uint64_t destroyed() { return fake.calls("PJRT_Buffer_Destroy"); }
};

TEST_F(HandleTest, AnEmptyHandleDestroysNothing) {
  {
    Buffer empty;
    EXPECT_FALSE(empty);
    EXPECT_EQ(empty.get(), nullptr);
    empty.reset();
    const Buffer moved = std::move(empty);
    const Buffer null(api(), nullptr);
  }
  EXPECT_EQ(destroyed(), 0U);
}

TEST_F(HandleTest, ItsObjectIsDestroyedOnceAtTheEnd) {
  {
    Buffer first = buffer();
    EXPECT_TRUE(first);
    PJRT_Buffer* object = first.get();
    Buffer second = std::move(first);
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): a moved-from handle is empty
    EXPECT_EQ(second.get(), object);
    EXPECT_EQ(destroyed(), 0U);
  }
  EXPECT_EQ(destroyed(), 1U);
  EXPECT_EQ(fake.live(FAKE_PLUGIN_BUFFER), 0);
}

TEST_F(HandleTest, AssignmentDestroysTheObjectBefore) {
  Buffer handle = buffer();
  handle = buffer();
  EXPECT_EQ(destroyed(), 1U);
  Buffer& same = handle;
  handle = std::move(same);
  EXPECT_TRUE(handle);
  EXPECT_EQ(destroyed(), 1U);
  handle.reset();
  EXPECT_FALSE(handle);
  EXPECT_EQ(destroyed(), 2U);
  handle.reset();
  EXPECT_EQ(destroyed(), 2U);
}

// Destroys an object of each kind while the plugin's Destroy fails: the error must not leak.
TEST_F(HandleTest, TheErrorOfAFailingDestroyIsDropped) {
  for (const char* function : {"PJRT_Client_Destroy", "PJRT_Buffer_Destroy", "PJRT_Event_Destroy",
                               "PJRT_Executable_Destroy", "PJRT_LoadedExecutable_Destroy"}) {
    fake.fail(function, 0, PJRT_Error_Code_INTERNAL, "will not die");
  }
  {
    const Client own = Client::create(api(), {});
    const LoadedExecutable executable =
        own.compile("output F32[] fill 1", "fake", serialize_compile_options({}));
    EXPECT_EQ(executable.output_types().size(), 1U);  // makes and destroys a PJRT_Executable
    Buffer copied;
    const float value = 1;
    EXPECT_TRUE(copy_from_host(own, &value, {PJRT_Buffer_Type_F32, {}}, copied).ok());
  }
  EXPECT_EQ(fake.failures(), 5U);
  EXPECT_EQ(fake.live(), 0) << fake.live_by_kind();
}

}  // namespace
}  // namespace cyxla::pjrt

// SPDX-License-Identifier: Apache-2.0
#include "pjrt/status.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

using test::message_of;

class StatusTest : public test::PjrtTest {
 protected:
  void SetUp() override {
    PjrtTest::SetUp();
    api();
  }
  // Returns a status with a plugin's error.
  Status failed(PJRT_Error_Code code, const char* message) {
    fake.fail("PJRT_Plugin_Initialize", 1, code, message);
    CYXLA_PJRT_ARGS(PJRT_Plugin_Initialize, args);
    return api().call(CYXLA_SLOT(PJRT_Plugin_Initialize), args);
  }
  static std::string description(const Status& status) {
    std::array<char, 200> text = {};
    status.describe(text.data(), text.size());
    return text.data();
  }
  std::uint64_t destroyed() { return fake.calls("PJRT_Error_Destroy"); }
};

TEST_F(StatusTest, SuccessHasNoMessageAndNothingToDestroy) {
  {
    const Status status;
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(status.message(), "");
    std::array<char, 4> text = {'x', 'x', 'x', 'x'};
    status.describe(text.data(), text.size());
    EXPECT_STREQ(text.data(), "");
    status.throw_if_error(ErrorCode::kPlugin, "nowhere");
  }
  const Status called(api(), nullptr, "PJRT_Client_Create");
  EXPECT_TRUE(called.ok());
  EXPECT_EQ(destroyed(), 0U);
}

TEST_F(StatusTest, FailureHasThePluginsCodeAndText) {
  const Status status = failed(PJRT_Error_Code_RESOURCE_EXHAUSTED, "out of everything");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "out of everything");
  EXPECT_EQ(status.code(), PJRT_Error_Code_RESOURCE_EXHAUSTED);
}

TEST_F(StatusTest, ThrowsWithPlaceCodeAndText) {
  const std::string message = message_of(ErrorCode::kCompile, [&] {
    failed(PJRT_Error_Code_NOT_FOUND, "no such thing").throw_if_error(ErrorCode::kCompile, "there");
  });
  EXPECT_EQ(message, "there: NOT_FOUND: no such thing");
}

TEST_F(StatusTest, TheErrorIsDestroyedOnce) {
  {
    Status status = failed(PJRT_Error_Code_INTERNAL, "a");
    EXPECT_EQ(fake.live(FAKE_PLUGIN_ERROR), 1);
    Status moved = std::move(status);
    Status again = std::move(moved);
    EXPECT_TRUE(status.ok());  // NOLINT(bugprone-use-after-move): moved-from means success
    EXPECT_TRUE(moved.ok());   // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(again.message(), "a");
    EXPECT_EQ(destroyed(), 0U);
  }
  EXPECT_EQ(destroyed(), 1U);
}

TEST_F(StatusTest, AssignmentDestroysTheErrorBefore) {
  Status status = failed(PJRT_Error_Code_INTERNAL, "first");
  status = failed(PJRT_Error_Code_INTERNAL, "second");
  EXPECT_EQ(destroyed(), 1U);
  EXPECT_EQ(status.message(), "second");
  Status& same = status;
  status = std::move(same);
  EXPECT_EQ(status.message(), "second");
  EXPECT_EQ(destroyed(), 1U);
  status = Status();
  EXPECT_EQ(destroyed(), 2U);
  status = failed(PJRT_Error_Code_INTERNAL, "third");
  EXPECT_EQ(status.message(), "third");
}

TEST_F(StatusTest, TheErrorIsDestroyedWhenThrown) {
  EXPECT_THROW(failed(PJRT_Error_Code_INTERNAL, "x").throw_if_error(ErrorCode::kPlugin, "here"),
               Error);
  EXPECT_EQ(destroyed(), 1U);
}

TEST_F(StatusTest, DescriptionsAreCutAndTerminated) {
  const Status status = failed(PJRT_Error_Code_INTERNAL, "abcdef");
  const std::string whole = "PJRT_Plugin_Initialize: INTERNAL: abcdef";
  std::array<char, 64> text = {};
  text.fill('#');
  status.describe(text.data(), 0);
  EXPECT_EQ(text[0], '#');
  status.describe(text.data(), 1);
  EXPECT_STREQ(text.data(), "");
  EXPECT_EQ(text[1], '#');
  status.describe(text.data(), whole.size() - 2);
  EXPECT_EQ(text.data(), whole.substr(0, whole.size() - 3));
  EXPECT_EQ(text[whole.size() - 2], '#');
  status.describe(text.data(), whole.size() + 1);
  EXPECT_EQ(text.data(), whole);
  status.describe(text.data(), text.size());
  EXPECT_EQ(text.data(), whole);
}

TEST_F(StatusTest, AnErrorWithoutATextSaysSo) {
  fake.set(FAKE_PLUGIN_MUTE, 1);
  const Status status = failed(PJRT_Error_Code_ABORTED, "never told");
  EXPECT_EQ(status.message(), "the plugin gave no message");
  EXPECT_EQ(description(status), "PJRT_Plugin_Initialize: ABORTED: the plugin gave no message");
  fake.fail("PJRT_Error_GetCode", 1, PJRT_Error_Code_INTERNAL, "no code either");
  EXPECT_EQ(description(status), "PJRT_Plugin_Initialize: UNKNOWN: the plugin gave no message");
}

TEST_F(StatusTest, ASuccessThatGivesNothingIsAFailure) {
  Status status = Status::nothing_given("PJRT_Client_Compile", "executable");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), PJRT_Error_Code_UNKNOWN);
  EXPECT_EQ(description(status),
            "PJRT_Client_Compile: the plugin reported success but gave no executable");
  Status assigned;
  assigned = std::move(status);
  EXPECT_TRUE(status.ok());  // NOLINT(bugprone-use-after-move): moved-from means success
  const Status moved = std::move(assigned);
  EXPECT_TRUE(assigned.ok());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(message_of(ErrorCode::kCompile,
                       [&] { moved.throw_if_error(ErrorCode::kCompile, "PJRT_Client_Compile"); }),
            description(moved));
}

TEST_F(StatusTest, AnUnknowableCodeIsUnknown) {
  const Status status = failed(PJRT_Error_Code_ABORTED, "reason");
  fake.fail("PJRT_Error_GetCode", 1, PJRT_Error_Code_INTERNAL, "no code today");
  EXPECT_EQ(status.code(), PJRT_Error_Code_UNKNOWN);
  EXPECT_EQ(destroyed(), 1U);  // the error of GetCode
  EXPECT_EQ(status.code(), PJRT_Error_Code_ABORTED);
}

TEST_F(StatusTest, CodesHaveTheirNames) {
  constexpr std::pair<int, const char*> kNames[] = {
      {PJRT_Error_Code_CANCELLED, "CANCELLED"},
      {PJRT_Error_Code_UNKNOWN, "UNKNOWN"},
      {PJRT_Error_Code_INVALID_ARGUMENT, "INVALID_ARGUMENT"},
      {PJRT_Error_Code_DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"},
      {PJRT_Error_Code_NOT_FOUND, "NOT_FOUND"},
      {PJRT_Error_Code_ALREADY_EXISTS, "ALREADY_EXISTS"},
      {PJRT_Error_Code_PERMISSION_DENIED, "PERMISSION_DENIED"},
      {PJRT_Error_Code_RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"},
      {PJRT_Error_Code_FAILED_PRECONDITION, "FAILED_PRECONDITION"},
      {PJRT_Error_Code_ABORTED, "ABORTED"},
      {PJRT_Error_Code_OUT_OF_RANGE, "OUT_OF_RANGE"},
      {PJRT_Error_Code_UNIMPLEMENTED, "UNIMPLEMENTED"},
      {PJRT_Error_Code_INTERNAL, "INTERNAL"},
      {PJRT_Error_Code_UNAVAILABLE, "UNAVAILABLE"},
      {PJRT_Error_Code_DATA_LOSS, "DATA_LOSS"},
      {PJRT_Error_Code_UNAUTHENTICATED, "UNAUTHENTICATED"},
      {17, "UNKNOWN"},
      {31, "UNKNOWN"}};
  for (const auto& [code, name] : kNames) {
    EXPECT_STREQ(error_code_name(static_cast<PJRT_Error_Code>(code)), name);
  }
}

}  // namespace
}  // namespace cyxla::pjrt

// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <gtest/gtest.h>

namespace cyxla {
namespace {

TEST(Error, NamesThePlaceBeforeTheMessage) {
  const Error error(ErrorCode::kCompile, "PJRT_Client_Compile", "INTERNAL: no");
  EXPECT_STREQ(error.what(), "PJRT_Client_Compile: INTERNAL: no");
  EXPECT_EQ(error.where(), "PJRT_Client_Compile");
  EXPECT_EQ(error.code(), ErrorCode::kCompile);
}

TEST(Error, WithoutAPlaceIsTheMessageAlone) {
  const Error error(ErrorCode::kFork, "", "forked");
  EXPECT_STREQ(error.what(), "forked");
  EXPECT_EQ(error.where(), "");
}

TEST(Error, IsAStandardException) {
  EXPECT_THROW(throw Error(ErrorCode::kArgument, "", "bad"), std::runtime_error);
}

}  // namespace
}  // namespace cyxla

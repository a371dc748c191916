// SPDX-License-Identifier: Apache-2.0
#include "pjrt/plugin.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

using test::FakePlugin;
using test::message_of;

class PluginTest : public test::PjrtTest {};

TEST_F(PluginTest, ALibraryWithoutTheEntryPointIsNoPlugin) {
  EXPECT_EQ(message_of(ErrorCode::kPlugin, [] { return Plugin::load("libm.so.6"); }),
            "libm.so.6 is a shared library but not a PJRT plugin: it has no function GetPjrtApi");
}

TEST_F(PluginTest, AMissingLibraryIsNamed) {
  const std::string message =
      message_of(ErrorCode::kPlugin, [] { return Plugin::load("/nope/plugin.so"); });
  EXPECT_EQ(message.rfind("cannot load the plugin /nope/plugin.so: ", 0), 0U) << message;
}

TEST_F(PluginTest, IsInitializedOnceAndFirst) {
  plugin();
  EXPECT_EQ(fake.calls("PJRT_Plugin_Initialize"), 1U);
  EXPECT_EQ(fake.all_calls(), 2U);  // and PJRT_Plugin_Attributes
  client();
  EXPECT_EQ(fake.calls("PJRT_Plugin_Initialize"), 1U);
}

TEST_F(PluginTest, AFailingInitializationIsReported) {
  fake.fail("PJRT_Plugin_Initialize", 1, PJRT_Error_Code_UNAVAILABLE, "no driver");
  EXPECT_EQ(message_of(ErrorCode::kPlugin, [] { return Plugin::load(FakePlugin::path()); }),
            "PJRT_Plugin_Initialize: UNAVAILABLE: no driver");
  EXPECT_EQ(fake.calls("PJRT_Plugin_Attributes"), 0U);
  plugin();  // the next attempt works
}

TEST_F(PluginTest, FailingAttributesAreReported) {
  fake.fail("PJRT_Plugin_Attributes", 1, PJRT_Error_Code_INTERNAL, "none of your business");
  EXPECT_EQ(message_of(ErrorCode::kPlugin, [] { return Plugin::load(FakePlugin::path()); }),
            "PJRT_Plugin_Attributes: INTERNAL: none of your business");
}

TEST_F(PluginTest, AttributesKeepTheirTypes) {
  const NamedValues expected = {{"xla_version", std::int64_t{2}},
                                {"vendor", "vendor"},
                                {"share", 0.5F},
                                {"fast", true},
                                {"stablehlo_current_version", std::vector<std::int64_t>{1, 20, 3}}};
  EXPECT_EQ(plugin().attributes(), expected);
}

TEST_F(PluginTest, TellsItsStablehloVersion) {
  const auto version = plugin().stablehlo_version();
  ASSERT_TRUE(version);
  EXPECT_EQ(*version, (std::array<std::int64_t, 3>{1, 20, 3}));
}

TEST_F(PluginTest, AnAbsentOrOddStablehloVersionIsNone) {
  for (const int kind : {1, 2, 3}) {
    fake.set(FAKE_PLUGIN_STABLEHLO_ATTRIBUTE, kind);
    EXPECT_FALSE(Plugin::load(FakePlugin::path()).stablehlo_version()) << kind;
  }
}

}  // namespace
}  // namespace cyxla::pjrt

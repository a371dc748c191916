// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

using std::string_literals::operator""s;
using test::FakePlugin;
using test::message_of;

class ClientTest : public test::PjrtTest {
 protected:
  std::string create_message(const NamedValues& options = {}) {
    return message_of(ErrorCode::kPlugin, [&] { return Client::create(api(), options); });
  }
};

TEST_F(ClientTest, TellsPlatformAndFirstDevice) {
  fake.set(FAKE_PLUGIN_NUM_DEVICES, 3);
  EXPECT_EQ(client().platform_name(), "fake");
  EXPECT_EQ(client().platform_version(), "fake plugin 1");
  EXPECT_NE(client().device(), nullptr);
  EXPECT_EQ(fake.live(FAKE_PLUGIN_CLIENT), 1);
  // The fake plugin accepts only a device of the client.
  EXPECT_TRUE(copy<float>(PJRT_Buffer_Type_F32, {1}, {1}));
}

TEST_F(ClientTest, OptionsReachThePluginWithTheirExactTypes) {
  const Client made = Client::create(api(), {{"cpu_device_count", std::int64_t{1}},
                                             {"asynchronous", false},
                                             {"memory_fraction", 0.5F},
                                             {"allocator", "bfc"},
                                             {"visible_devices", std::vector<std::int64_t>{0, 2}}});
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_CREATE_OPTIONS),
            "allocator string bfc\n"
            "asynchronous bool false\n"
            "cpu_device_count int64 1\n"
            "memory_fraction float 0.500000\n"
            "visible_devices int64_list 0 2\n");
}

TEST_F(ClientTest, UnknownOptionsAreThePluginsError) {
  EXPECT_EQ(create_message({{"nonsense", std::int64_t{1}}}),
            "PJRT_Client_Create: INVALID_ARGUMENT: Unexpected option name passed to "
            "PJRT_Client_Create: nonsense");
}

TEST_F(ClientTest, WronglyTypedOptionsAreThePluginsError) {
  EXPECT_EQ(create_message({{"asynchronous", std::int64_t{1}}}),
            "PJRT_Client_Create: INVALID_ARGUMENT: Option passed to PJRT_Client_Create with name "
            "asynchronous has type index 1 but expected type index is 4");
}

TEST_F(ClientTest, AFailureOnTheWayLeavesNoClient) {
  for (const char* function : {"PJRT_Client_Create", "PJRT_Client_PlatformName",
                               "PJRT_Client_PlatformVersion", "PJRT_Client_AddressableDevices"}) {
    fake.fail(function, 1, PJRT_Error_Code_FAILED_PRECONDITION, "not now");
    EXPECT_EQ(create_message(), function + ": FAILED_PRECONDITION: not now"s);
    EXPECT_EQ(fake.live(), 0) << function << ": " << fake.live_by_kind();
  }
}

TEST_F(ClientTest, NoDeviceIsAnError) {
  fake.set(FAKE_PLUGIN_NUM_DEVICES, 0);
  EXPECT_EQ(create_message(), "PJRT_Client_AddressableDevices: the plugin "s + FakePlugin::path() +
                                  " found no device; set CYXLA_PLATFORM=cpu to use a CPU plugin");
  EXPECT_EQ(fake.live(), 0) << fake.live_by_kind();
}

TEST_F(ClientTest, ProgramFormatAndOptionsReachThePlugin) {
  const std::string code = "# \0 \n"s + "output F32[] fill 3\n";
  // Substrings of longer texts, because only the given length may be read.
  const std::string_view format = std::string_view("fake news").substr(0, 4);
  const std::string_view options = std::string_view("a\0bc", 4).substr(0, 3);
  const LoadedExecutable executable = client().compile(code, format, options);
  EXPECT_TRUE(executable);
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_PROGRAM_CODE), code);
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_PROGRAM_FORMAT), "fake");
  EXPECT_EQ(fake.recorded(FAKE_PLUGIN_COMPILE_OPTIONS), "a\0b"s);
}

TEST_F(ClientTest, AProgramThatCannotBeCompiledIsThePluginsError) {
  EXPECT_EQ(message_of(ErrorCode::kCompile, [&] { return compile("nonsense F32[2]"); }),
            "PJRT_Client_Compile: INVALID_ARGUMENT: unknown statement: nonsense F32[2]");
  EXPECT_EQ(message_of(ErrorCode::kCompile, [&] { return client().compile("", "mlir", ""); }),
            "PJRT_Client_Compile: INVALID_ARGUMENT: unknown program format 'mlir'");
}

}  // namespace
}  // namespace cyxla::pjrt

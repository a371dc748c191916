// SPDX-License-Identifier: Apache-2.0
#include "pjrt/api.h"

#include <gtest/gtest.h>

#include <string>

#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

using test::FakePlugin;
using test::message_of;

const std::string kPath = FakePlugin::path();

class ApiTest : public test::PjrtTest {
 protected:
  std::string load_message() {
    return message_of(ErrorCode::kPlugin, [&] { return Plugin::load(kPath); });
  }
};

TEST_F(ApiTest, NullTableIsRefused) {
  fake.set(FAKE_PLUGIN_NULL_TABLE, 1);
  EXPECT_EQ(load_message(), kPath + " is not a usable PJRT plugin: GetPjrtApi returned null");
}

TEST_F(ApiTest, TableWithoutAVersionIsRefused) {
  fake.set(FAKE_PLUGIN_TABLE_SIZE, 39);
  EXPECT_EQ(load_message(),
            kPath +
                " is not a usable PJRT plugin: its function table has 39 bytes, too few to "
                "hold its version; install a newer plugin");
}

TEST_F(ApiTest, OtherMajorVersionIsRefused) {
  fake.set(FAKE_PLUGIN_API_MAJOR, 7);
  fake.set(FAKE_PLUGIN_API_MINOR, 3);
  EXPECT_EQ(load_message(),
            kPath +
                " has PJRT API version 7.3, cyxla needs major version 0 (it was built "
                "with 0." +
                std::to_string(PJRT_API_MINOR) + "); install a plugin of that major version");
}

TEST_F(ApiTest, OtherMinorVersionsAreTaken) {
  for (const int minor : {40, PJRT_API_MINOR + 100}) {
    fake.set(FAKE_PLUGIN_API_MINOR, minor);
    const Plugin loaded = Plugin::load(kPath);
    EXPECT_EQ(loaded.api().version().major, 0);
    EXPECT_EQ(loaded.api().version().minor, minor);
  }
}

TEST_F(ApiTest, EveryFunctionThatCannotBeDoneWithoutIsRequired) {
  for (const char* function : {"PJRT_Error_Destroy",
                               "PJRT_Error_Message",
                               "PJRT_Error_GetCode",
                               "PJRT_Plugin_Initialize",
                               "PJRT_Plugin_Attributes",
                               "PJRT_Event_Destroy",
                               "PJRT_Event_Await",
                               "PJRT_Client_Create",
                               "PJRT_Client_Destroy",
                               "PJRT_Client_PlatformName",
                               "PJRT_Client_PlatformVersion",
                               "PJRT_Client_AddressableDevices",
                               "PJRT_Client_Compile",
                               "PJRT_Client_BufferFromHostBuffer",
                               "PJRT_Executable_Destroy",
                               "PJRT_Executable_NumOutputs",
                               "PJRT_Executable_OutputElementTypes",
                               "PJRT_Executable_OutputDimensions",
                               "PJRT_LoadedExecutable_Destroy",
                               "PJRT_LoadedExecutable_GetExecutable",
                               "PJRT_LoadedExecutable_Execute",
                               "PJRT_Buffer_Destroy",
                               "PJRT_Buffer_ToHostBuffer",
                               "PJRT_Buffer_ReadyEvent"}) {
    fake.reset();
    fake.remove_function(function);
    EXPECT_EQ(load_message(), kPath + " (PJRT API version 0." + std::to_string(PJRT_API_MINOR) +
                                  ") lacks functions that cyxla needs: " + function +
                                  "; install a newer plugin");
    EXPECT_EQ(fake.all_calls(), 0U) << function;
  }
}

TEST_F(ApiTest, AllMissingFunctionsAreNamedAtOnce) {
  fake.set(FAKE_PLUGIN_API_MINOR, 5);
  fake.set(FAKE_PLUGIN_TABLE_SIZE, offsetof(PJRT_Api, PJRT_Executable_OutputElementTypes));
  EXPECT_EQ(load_message(), kPath +
                                " (PJRT API version 0.5) lacks functions that cyxla needs: "
                                "PJRT_Executable_OutputElementTypes, "
                                "PJRT_Executable_OutputDimensions; install a newer plugin");
}

TEST_F(ApiTest, OtherFunctionsMayBeAbsent) {
  for (const char* function :
       {"PJRT_Event_IsReady", "PJRT_Client_CreateViewOfDeviceBuffer", "PJRT_Buffer_IsOnCpu",
        "PJRT_Buffer_UnsafePointer", "PJRT_Executable_GetCostAnalysis",
        "PJRT_Executable_GetCompiledMemoryStats", "PJRT_Executable_Serialize"}) {
    fake.remove_function(function);
  }
  const Client made = Client::create(api(), {});
  EXPECT_FALSE(api().has(CYXLA_SLOT(PJRT_Buffer_IsOnCpu)));
  EXPECT_TRUE(api().has(CYXLA_SLOT(PJRT_Buffer_Destroy)));
}

TEST_F(ApiTest, SlotsBeyondTheTablesOwnSizeAreNotRead) {
  // The slot holds a function; only the size excludes it.
  fake.set(FAKE_PLUGIN_TABLE_SIZE, offsetof(PJRT_Api, PJRT_Client_CreateViewOfDeviceBuffer));
  ASSERT_NE(api().table().PJRT_Client_CreateViewOfDeviceBuffer, nullptr);
  EXPECT_FALSE(api().has(CYXLA_SLOT(PJRT_Client_CreateViewOfDeviceBuffer)));
  EXPECT_FALSE(api().has(CYXLA_SLOT(PJRT_Executable_GetCompiledMemoryStats)));
  EXPECT_TRUE(api().has(CYXLA_SLOT(PJRT_Executable_OutputDimensions)));
  fake.set(FAKE_PLUGIN_TABLE_SIZE, offsetof(PJRT_Api, PJRT_Executable_Fingerprint));
  EXPECT_TRUE(api().has(CYXLA_SLOT(PJRT_Client_CreateViewOfDeviceBuffer)));
}

TEST_F(ApiTest, CallingAnAbsentFunctionIsAnError) {
  fake.remove_function("PJRT_Buffer_IsOnCpu");
  const std::string message = message_of(ErrorCode::kUnsupported, [&] {
    CYXLA_PJRT_ARGS(PJRT_Buffer_IsOnCpu, args);
    static_cast<void>(api().call(CYXLA_SLOT(PJRT_Buffer_IsOnCpu), args));
  });
  EXPECT_EQ(message, "PJRT_Buffer_IsOnCpu: the plugin " + kPath + " (PJRT API version 0." +
                         std::to_string(PJRT_API_MINOR) +
                         ") does not have this function; install a newer plugin");
}

TEST_F(ApiTest, ArgumentsAreZeroedAndSized) {
  CYXLA_PJRT_ARGS(PJRT_Client_Create, args);
  EXPECT_EQ(args.struct_size, static_cast<std::size_t>(PJRT_Client_Create_Args_STRUCT_SIZE));
  EXPECT_EQ(args.create_options, nullptr);
  EXPECT_EQ(args.num_options, 0U);
  EXPECT_EQ(args.kv_try_get_user_arg, nullptr);
}

TEST_F(ApiTest, CheckedCallThrowsThePluginsError) {
  const Api& api = this->api();
  fake.fail("PJRT_Plugin_Initialize", 1, PJRT_Error_Code_DATA_LOSS, "gone");
  const std::string message = message_of(ErrorCode::kFork, [&] {
    CYXLA_PJRT_ARGS(PJRT_Plugin_Initialize, args);
    checked_call(api, CYXLA_SLOT(PJRT_Plugin_Initialize), args, ErrorCode::kFork);
  });
  EXPECT_EQ(message, "PJRT_Plugin_Initialize: DATA_LOSS: gone");
}

TEST_F(ApiTest, ExtensionsAreFoundByType) {
  const PJRT_Extension_Base* ffi = api().extension(PJRT_Extension_Type_FFI);
  ASSERT_NE(ffi, nullptr);
  EXPECT_EQ(ffi->type, PJRT_Extension_Type_FFI);
  EXPECT_NE(api().extension(PJRT_Extension_Type_Layouts), nullptr);
  EXPECT_EQ(api().extension(PJRT_Extension_Type_Stream), nullptr);
}

TEST_F(ApiTest, TheTableIsThePluginsOwn) {
  const Plugin second = Plugin::load(kPath);
  EXPECT_EQ(&api().table(), &second.api().table());
  EXPECT_EQ(api().source(), kPath);
}

}  // namespace
}  // namespace cyxla::pjrt

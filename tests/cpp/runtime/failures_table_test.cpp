// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "support/child_process.h"
#include "support/sweep.h"

namespace cyxla::runtime {
namespace {

using test::in_child;
using test::ProgramReference;
using test::SampleCall;

// Plugins with other function tables than the header's. Each either works or is refused with the
// reason, and a function that it lacks is never called. Each is tried in its own process.
class FailuresTableTest : public test::RuntimeTest {
 protected:
  // Returns "works", the refusal's message, or "wrong: " and what was wrong.
  std::string outcome() {
    std::string message;
    try {
      loaded();
      CompileRequest direct = test::request_of(SampleCall::kCode);
      direct.route.route = RouteRequest::Route::kAuto;
      const ProgramReference program = loaded().compile(direct).program;
      SampleCall call;
      for (int i = 0; i < 6 && message.empty(); ++i) {
        message = call.run(program->spec(), i % 2);
      }
      loaded().serialize(*program);
      loaded().describe_device();
    } catch (const Error& error) {
      return fake.live() != 0 || fake.all_calls() != 0 || error.code() != ErrorCode::kPlugin
                 ? std::string("wrong: not refused at once: ") + error.what()
                 : error.what();
    }
    Runtime::shut_down();
    if (fake.violations() != 0) {
      message = fake.recorded(FAKE_PLUGIN_VIOLATION);
    }
    return message.empty() && fake.live() == 0 ? "works" : "wrong: " + message;
  }
};

// Without these, a plugin still executes programs. Inputs are copied instead of viewed; programs
// are not saved, executed directly or measured; and less is known about the device.
const std::vector<std::string> kOptional = {"PJRT_Buffer_IsOnCpu",
                                            "PJRT_Buffer_UnsafePointer",
                                            "PJRT_Client_CreateViewOfDeviceBuffer",
                                            "PJRT_DeviceDescription_Attributes",
                                            "PJRT_DeviceDescription_DebugString",
                                            "PJRT_DeviceDescription_Kind",
                                            "PJRT_Device_GetDescription",
                                            "PJRT_Event_IsReady",
                                            "PJRT_Executable_DeserializeAndLoad",
                                            "PJRT_Executable_GetCompiledMemoryStats",
                                            "PJRT_Executable_GetCostAnalysis",
                                            "PJRT_Executable_OptimizedProgram",
                                            "PJRT_Executable_Serialize"};

TEST_F(FailuresTableTest, EachFunctionMissing) {
  std::vector<std::string> functions = fake.functions();
  for (const char* extension : {"PJRT_FFI_Register_Handler", "PJRT_Gpu_Register_Custom_Call"}) {
    std::erase(functions, extension);  // not in the table
  }
  functions.insert(functions.end(), {"PJRT_Error_Destroy", "PJRT_Error_Message"});
  std::vector<std::string> working;
  int refused = 0;
  for (const std::string& function : functions) {
    const std::string result = in_child([&] {
      fake.remove_function(function.c_str());
      return outcome();
    });
    if (result == "works") {
      working.push_back(function);
    } else {
      ++refused;
      EXPECT_NE(result.find("lacks functions that cyxla needs: " + function + ";"),
                std::string::npos)
          << function << ": " << result;
    }
  }
  std::printf("faults: missing_function: %zu positions, %d reported, %zu tolerated\n",
              functions.size(), refused, working.size());
  std::sort(working.begin(), working.end());
  EXPECT_EQ(working, kOptional);
  EXPECT_EQ(refused, 24);
}

TEST_F(FailuresTableTest, EachTableSize) {
  int working = 0;
  int refused = 0;
  std::size_t size = 0;
  for (; size <= sizeof(PJRT_Api) + 64; size += 8) {
    const std::string result = in_child([&] {
      fake.set(FAKE_PLUGIN_TABLE_SIZE, static_cast<std::int64_t>(size));
      return outcome();
    });
    if (result == "works") {
      ++working;
    } else {
      ++refused;
      EXPECT_TRUE(result.find("lacks functions that cyxla needs: ") != std::string::npos ||
                  result.find("too few to hold its version") != std::string::npos)
          << size << ": " << result;
    }
  }
  std::printf("faults: table_size: %d positions, %d reported, %d tolerated\n", working + refused,
              refused, working);
  // The last required function is PJRT_Executable_OutputDimensions.
  EXPECT_EQ(static_cast<std::size_t>(refused),
            offsetof(PJRT_Api, PJRT_Executable_OutputDimensions) / 8 + 1);
  EXPECT_EQ(working + refused, static_cast<int>(size / 8));
}

// The table sizes of plugins of these versions.
TEST_F(FailuresTableTest, EachVersion) {
  struct Version {
    int minor;
    std::size_t size;
  };
  constexpr Version kVersions[] = {{0, sizeof(PJRT_Api)}, {80, 984},   {81, 984},   {82, 984},
                                   {105, 1128},           {106, 1128}, {107, 1128}, {114, 1144},
                                   {115, 1144},           {116, 1144}, {1000, 2000}};
  int positions = 0;
  int refused = 0;
  for (const int major : {-1, 0, 1, 2, 7}) {
    for (const Version& version : kVersions) {
      ++positions;
      const std::string result = in_child([&] {
        fake.set(FAKE_PLUGIN_API_MAJOR, major);
        fake.set(FAKE_PLUGIN_API_MINOR, version.minor);
        fake.set(FAKE_PLUGIN_TABLE_SIZE, static_cast<std::int64_t>(version.size));
        return outcome();
      });
      const std::string text = std::to_string(major) + "." + std::to_string(version.minor);
      if (major == PJRT_API_MAJOR) {
        EXPECT_EQ(result, "works") << text;
      } else {
        ++refused;
        EXPECT_NE(result.find(" has PJRT API version " + text + ", cyxla needs major version 0"),
                  std::string::npos)
            << result;
      }
    }
  }
  std::printf("faults: version: %d positions, %d reported, %d tolerated\n", positions, refused,
              positions - refused);
}

TEST_F(FailuresTableTest, EachLackOfTheFfiExtension) {
  for (const int kind : {1, 2, 3}) {
    EXPECT_EQ(in_child([&]() -> std::string {
                fake.set(FAKE_PLUGIN_FFI, kind);
                loaded();
                int handler = 0;
                try {
                  loaded().register_ffi_handler("target", "Host", &handler);
                } catch (const Error& error) {
                  return error.code() == ErrorCode::kUnsupported ? error.what() : "wrong code";
                }
                return "no error";
              }),
              std::string("cannot register the custom-call target target: the plugin ") +
                  test::FakePlugin::path() + " has no FFI extension; use another plugin");
  }
}

}  // namespace
}  // namespace cyxla::runtime

// SPDX-License-Identifier: Apache-2.0
#include "pjrt/device.h"

#include <gtest/gtest.h>

#include <string>

#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

class DeviceTest : public test::PjrtTest {
 protected:
  DeviceDescription describe() { return describe_device(api(), client().get()); }
};

TEST_F(DeviceTest, TellsWhatCodeDependsOn) {
  fake.set(FAKE_PLUGIN_NUM_DEVICES, 3);
  const DeviceDescription device = describe();
  EXPECT_EQ(device.kind, "fake device");
  EXPECT_EQ(device.debug_string, "FakeDevice(id=0)");
  EXPECT_EQ(device.attributes, (NamedValues{{"compute_capability", "9.0"}}));
  EXPECT_EQ(device.num_addressable, 3U);
}

// Fields that the plugin does not report are empty; the others are kept.
TEST_F(DeviceTest, LeavesOutWhatThePluginDoesNotTell) {
  for (const char* function : {"PJRT_DeviceDescription_Kind", "PJRT_DeviceDescription_DebugString",
                               "PJRT_DeviceDescription_Attributes"}) {
    fake.fail(function, 1, PJRT_Error_Code_UNIMPLEMENTED, "not here");
    const DeviceDescription device = describe();
    EXPECT_EQ(device.kind.empty() + device.debug_string.empty() + device.attributes.empty(), 1)
        << function;
  }
  fake.fail("PJRT_Device_GetDescription", 1, PJRT_Error_Code_UNIMPLEMENTED, "not here");
  const DeviceDescription device = describe();
  EXPECT_EQ(device.kind + device.debug_string, "");
  EXPECT_TRUE(device.attributes.empty());
  EXPECT_EQ(device.num_addressable, 1U);
}

}  // namespace
}  // namespace cyxla::pjrt

// SPDX-License-Identifier: Apache-2.0
#include "runtime/capabilities.h"

#include <gtest/gtest.h>

#include "support/pjrt_test.h"

namespace cyxla::runtime {
namespace {

class CapabilitiesTest : public test::PjrtTest {
 protected:
  void expect(bool aliased_inputs, bool inplace_outputs) {
    const std::int64_t live = (client(), fake.live());
    const Capabilities found = probe_capabilities(client());
    EXPECT_EQ(found.aliased_inputs, aliased_inputs);
    EXPECT_EQ(found.inplace_outputs, inplace_outputs);
    EXPECT_EQ(fake.live(), live) << fake.live_by_kind();
  }
};

TEST_F(CapabilitiesTest, HostMemoryIsAliased) { expect(true, true); }

TEST_F(CapabilitiesTest, AnAsynchronousPluginIsWaitedFor) {
  fake.set(FAKE_PLUGIN_ASYNCHRONOUS, 1);
  fake.set(FAKE_PLUGIN_DELAY_US, 5000);
  expect(true, true);
}

TEST_F(CapabilitiesTest, RefusedViewsAreNoAliases) {
  fake.set(FAKE_PLUGIN_VIEWS, 2);
  expect(false, true);
}

TEST_F(CapabilitiesTest, ViewsThatCopyAreNoAliases) {
  fake.set(FAKE_PLUGIN_VIEWS, 1);
  expect(false, true);
}

TEST_F(CapabilitiesTest, AnAbsentViewFunctionMeansNoAliases) {
  fake.set(FAKE_PLUGIN_TABLE_SIZE, offsetof(PJRT_Api, PJRT_Client_CreateViewOfDeviceBuffer));
  expect(false, true);
}

// Reading the address that such a plugin gives for a buffer would crash.
TEST_F(CapabilitiesTest, BuffersOnADeviceAreNeither) {
  fake.set(FAKE_PLUGIN_NOT_ON_CPU, 1);
  expect(false, false);
}

TEST_F(CapabilitiesTest, WithoutIsOnCpuNothingIsAssumed) {
  fake.remove_function("PJRT_Buffer_IsOnCpu");
  expect(false, false);
}

TEST_F(CapabilitiesTest, WithoutPointersOutputsAreCopied) {
  fake.remove_function("PJRT_Buffer_UnsafePointer");
  expect(true, false);
}

TEST_F(CapabilitiesTest, AnyFailureIsANo) {
  for (const char* function : {"PJRT_Client_CreateViewOfDeviceBuffer", "PJRT_Buffer_IsOnCpu",
                               "PJRT_Buffer_ToHostBuffer"}) {
    fake.fail(function, 1, PJRT_Error_Code_INTERNAL, "no");
    expect(false, true);
  }
  fake.fail("PJRT_Buffer_ToHostBuffer", 2, PJRT_Error_Code_INTERNAL, "no");
  expect(false, true);
  for (const char* function : {"PJRT_Client_BufferFromHostBuffer", "PJRT_Buffer_UnsafePointer"}) {
    fake.fail(function, 1, PJRT_Error_Code_INTERNAL, "no");
    expect(true, false);
  }
  fake.fail("PJRT_Buffer_IsOnCpu", 2, PJRT_Error_Code_INTERNAL, "no");
  expect(true, false);
  fake.fail("PJRT_Buffer_ToHostBuffer", 3, PJRT_Error_Code_INTERNAL, "no");
  expect(true, false);
  fake.fail_event("PJRT_Client_BufferFromHostBuffer", 1, PJRT_Error_Code_INTERNAL, "no");
  expect(true, false);
  expect(true, true);
}

}  // namespace
}  // namespace cyxla::runtime

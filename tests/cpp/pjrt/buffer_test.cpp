// SPDX-License-Identifier: Apache-2.0
#include "pjrt/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "pjrt/element_type.h"
#include "support/pjrt_test.h"

namespace cyxla::pjrt {
namespace {

class BufferTest : public test::PjrtTest {
 protected:
  void SetUp() override {
    PjrtTest::SetUp();
    client();
  }
  Buffer floats(const std::vector<float>& values) {
    return copy(PJRT_Buffer_Type_F32, {static_cast<std::int64_t>(values.size())}, values);
  }
  // Makes a view of `num_floats` floats.
  Status view(float* data, std::int64_t num_floats, Buffer& out) {
    const std::vector<std::int64_t> dimensions = {num_floats};
    return make_view(client(), data, {PJRT_Buffer_Type_F32, dimensions}, out);
  }
};

TEST_F(BufferTest, EveryElementTypeIsCopiedUnchanged) {
  for (std::int32_t type = 0; type < 40; ++type) {
    const std::size_t size = itemsize(type);
    if (size == 0) {
      continue;
    }
    std::vector<unsigned char> bytes(6 * size);
    std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(type));
    const std::vector<std::int64_t> dimensions = {2, 3};
    Buffer buffer;
    ASSERT_TRUE(copy_from_host(client(), bytes.data(), {type, dimensions}, buffer).ok()) << type;
    std::vector<unsigned char> back(bytes.size());
    ASSERT_TRUE(
        copy_to_host(api(), buffer.get(), {type, dimensions}, back.data(), back.size()).ok());
    EXPECT_EQ(back, bytes) << element_type_name(type);
  }
}

TEST_F(BufferTest, TheHostsDataMayChangeAfterTheCopy) {
  std::vector<float> values = {1, 2, 3};
  for (const int asynchronous : {0, 1}) {
    fake.set(FAKE_PLUGIN_ASYNCHRONOUS, asynchronous);
    const Buffer buffer = floats(values);
    values.assign(3, -1);
    EXPECT_EQ(read<float>(buffer.get(), PJRT_Buffer_Type_F32, {3}), (std::vector<float>{1, 2, 3}));
    values = {1, 2, 3};
  }
}

TEST_F(BufferTest, ScalarsAndEmptyArraysAreCopied) {
  const Buffer scalar = copy<double>(PJRT_Buffer_Type_F64, {}, {2.5});
  EXPECT_EQ(read<double>(scalar.get(), PJRT_Buffer_Type_F64, {}), std::vector<double>{2.5});
  const std::vector<std::int64_t> empty_dimensions = {0, 4};
  const Shape empty_shape = {PJRT_Buffer_Type_F32, empty_dimensions};
  Buffer empty;
  ASSERT_TRUE(copy_from_host(client(), nullptr, empty_shape, empty).ok());
  EXPECT_TRUE(copy_to_host(api(), empty.get(), empty_shape, nullptr, 0).ok());
}

// Arrays reach the host row-major regardless of the plugin's preferred layout, because cyxla
// requests it explicitly.
TEST_F(BufferTest, RowMajorOrderIsAskedForFromTwoDimensionsOn) {
  fake.set(FAKE_PLUGIN_RECORD_EXECUTIONS, 1);
  std::vector<std::int32_t> values(24);
  std::iota(values.begin(), values.end(), 0);
  const std::pair<std::vector<std::int64_t>, const char*> layouts[] = {
      {{24}, "none"}, {{4, 6}, "1 0"}, {{2, 3, 4}, "2 1 0"}, {{2, 2, 3, 2}, "3 2 1 0"}};
  for (const auto& [dimensions, layout] : layouts) {
    const Buffer buffer = copy(PJRT_Buffer_Type_S32, dimensions, values);
    EXPECT_EQ(read<std::int32_t>(buffer.get(), PJRT_Buffer_Type_S32, dimensions), values);
    EXPECT_EQ(fake.recorded(FAKE_PLUGIN_HOST_LAYOUT), layout);
  }
}

TEST_F(BufferTest, VeryManyDimensionsAreLeftToThePluginsLayout) {
  fake.set(FAKE_PLUGIN_RECORD_EXECUTIONS, 1);
  for (const std::size_t rank : {std::size_t{32}, std::size_t{33}}) {
    const std::vector<std::int64_t> dimensions(rank, 1);
    const Buffer buffer = copy<float>(PJRT_Buffer_Type_F32, dimensions, {4});
    EXPECT_EQ(read<float>(buffer.get(), PJRT_Buffer_Type_F32, dimensions), std::vector<float>{4});
    EXPECT_EQ(fake.recorded(FAKE_PLUGIN_HOST_LAYOUT) == "none", rank == 33) << rank;
  }
}

TEST_F(BufferTest, AViewIsTheHostsMemory) {
  const AlignedMemory memory = make_aligned(4 * sizeof(float));
  auto* data = static_cast<float*>(memory.get());
  std::iota(data, data + 4, 1.0F);
  Buffer buffer;
  ASSERT_TRUE(view(data, 4, buffer).ok());
  EXPECT_EQ(fake.live(FAKE_PLUGIN_VIEW), 1);
  EXPECT_EQ(read<float>(buffer.get(), PJRT_Buffer_Type_F32, {4}), (std::vector<float>{1, 2, 3, 4}));
  data[2] = 30;
  EXPECT_EQ(read<float>(buffer.get(), PJRT_Buffer_Type_F32, {4}),
            (std::vector<float>{1, 2, 30, 4}));
  const void* address = nullptr;
  ASSERT_TRUE(data_pointer(api(), buffer.get(), address).ok());
  EXPECT_EQ(address, data);
  buffer.reset();
  EXPECT_EQ(data[2], 30);
}

TEST_F(BufferTest, AMisalignedViewIsThePluginsError) {
  const AlignedMemory memory = make_aligned(256);
  Buffer buffer;
  const Status status = view(static_cast<float*>(memory.get()) + 1, 4, buffer);
  EXPECT_EQ(status.code(), PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_FALSE(buffer);
}

TEST_F(BufferTest, AFailingViewLeavesTheHandleAsItWas) {
  const AlignedMemory memory = make_aligned(256);
  Buffer buffer = floats({1});
  const PJRT_Buffer* before = buffer.get();
  fake.set(FAKE_PLUGIN_VIEWS, 2);
  EXPECT_EQ(view(static_cast<float*>(memory.get()), 4, buffer).code(),
            PJRT_Error_Code_UNIMPLEMENTED);
  EXPECT_EQ(buffer.get(), before);
}

TEST_F(BufferTest, AFailingCopyIsAnErrorWhereverItFails) {
  const std::vector<float> values = {1, 2};
  const std::vector<std::int64_t> dimensions = {2};
  const Shape shape = {PJRT_Buffer_Type_F32, dimensions};
  {
    Buffer buffer;
    fake.fail("PJRT_Client_BufferFromHostBuffer", 1, PJRT_Error_Code_RESOURCE_EXHAUSTED, "full");
    EXPECT_EQ(copy_from_host(client(), values.data(), shape, buffer).message(), "full");
    EXPECT_FALSE(buffer);
    fake.fail_event("PJRT_Client_BufferFromHostBuffer", 1, PJRT_Error_Code_DATA_LOSS, "lost");
    EXPECT_EQ(copy_from_host(client(), values.data(), shape, buffer).message(), "lost");
  }
  EXPECT_EQ(fake.live(FAKE_PLUGIN_BUFFER), 0);

  const Buffer buffer = floats(values);
  std::vector<float> back(2);
  const auto copy_back = [&](std::size_t size_bytes) {
    return copy_to_host(api(), buffer.get(), shape, back.data(), size_bytes).message();
  };
  fake.fail("PJRT_Buffer_ToHostBuffer", 1, PJRT_Error_Code_ABORTED, "stop");
  EXPECT_EQ(copy_back(8), "stop");
  fake.fail_event("PJRT_Buffer_ToHostBuffer", 1, PJRT_Error_Code_DATA_LOSS, "lost again");
  EXPECT_EQ(copy_back(8), "lost again");
  EXPECT_EQ(copy_back(4), "dst_size is 4, the buffer has 8 bytes");
  EXPECT_EQ(copy_back(8), "");
  EXPECT_EQ(back, values);
}

TEST_F(BufferTest, CopiesWithoutEventsAreTakenAsDone) {
  fake.set(FAKE_PLUGIN_NULL_COPY_EVENTS, 1);
  const Buffer buffer = floats({5, 6});
  EXPECT_EQ(read<float>(buffer.get(), PJRT_Buffer_Type_F32, {2}), (std::vector<float>{5, 6}));
  EXPECT_EQ(fake.calls("PJRT_Event_Await"), 0U);
}

TEST_F(BufferTest, CopiesToTheHostAreAwaited) {
  fake.set(FAKE_PLUGIN_ASYNCHRONOUS, 1);
  fake.set(FAKE_PLUGIN_DELAY_US, 20000);
  const Buffer buffer = floats({7, 8});
  EXPECT_EQ(read<float>(buffer.get(), PJRT_Buffer_Type_F32, {2}), (std::vector<float>{7, 8}));
}

TEST_F(BufferTest, ElementTypesWithoutWholeBytesAreThePluginsError) {
  const char byte = 0;
  Buffer buffer;
  EXPECT_EQ(copy_from_host(client(), &byte, {PJRT_Buffer_Type_S4, {}}, buffer).message(),
            "unsupported element type " + std::to_string(PJRT_Buffer_Type_S4));
}

TEST_F(BufferTest, DataPointerIsTheBuffersMemory) {
  const Buffer buffer = floats({1, 2});
  const void* data = nullptr;
  ASSERT_TRUE(data_pointer(api(), buffer.get(), data).ok());
  EXPECT_EQ(static_cast<const float*>(data)[1], 2);
  fake.fail("PJRT_Buffer_UnsafePointer", 1, PJRT_Error_Code_UNIMPLEMENTED, "no pointers");
  EXPECT_EQ(data_pointer(api(), buffer.get(), data).message(), "no pointers");
}

TEST_F(BufferTest, IsOnCpuNeedsTheFunctionAndItsYes) {
  const Buffer buffer = floats({1});
  EXPECT_TRUE(is_on_cpu(api(), buffer.get()));
  fake.fail("PJRT_Buffer_IsOnCpu", 1, PJRT_Error_Code_INTERNAL, "perhaps");
  EXPECT_FALSE(is_on_cpu(api(), buffer.get()));
  fake.set(FAKE_PLUGIN_NOT_ON_CPU, 1);
  EXPECT_FALSE(is_on_cpu(api(), buffer.get()));
  fake.set(FAKE_PLUGIN_NOT_ON_CPU, 0);
  EXPECT_TRUE(is_on_cpu(api(), buffer.get()));
  fake.remove_function("PJRT_Buffer_IsOnCpu");
  EXPECT_FALSE(is_on_cpu(api(), buffer.get()));
}

TEST_F(BufferTest, AbsentFunctionsAreKnownBeforehand) {
  EXPECT_TRUE(can_make_views(api()));
  EXPECT_TRUE(can_read_data_pointer(api()));
  fake.remove_function("PJRT_Client_CreateViewOfDeviceBuffer");
  EXPECT_FALSE(can_make_views(api()));
  EXPECT_TRUE(can_read_data_pointer(api()));
  fake.remove_function("PJRT_Buffer_UnsafePointer");
  EXPECT_FALSE(can_read_data_pointer(api()));
}

}  // namespace
}  // namespace cyxla::pjrt

// SPDX-License-Identifier: Apache-2.0
#include "base/aligned_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <new>

// By default, a sanitizer ends the process when an allocation is too large.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}

namespace cyxla {
namespace {

TEST(AlignedMemory, EverySizeIsAlignedAndWritable) {
  for (const std::size_t size : {1, 3, 63, 64, 65, 1000, 4096, 1 << 20}) {
    void* pointer = allocate_aligned(size);
    ASSERT_NE(pointer, nullptr) << size;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % 64, 0U) << size;
    std::memset(pointer, 0x5a, size);
    free_aligned(pointer);
  }
}

TEST(AlignedMemory, EmptyBlockHasAnAddressOfItsOwn) {
  void* first = allocate_aligned(0);
  void* second = allocate_aligned(0);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_NE(first, second);
  EXPECT_TRUE(is_aligned(first));
  free_aligned(first);
  free_aligned(second);
}

TEST(AlignedMemory, NullMayBeFreed) { free_aligned(nullptr); }

TEST(AlignedMemory, SizesNearTheLimitAreRefused) {
  constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();
  // Rounded up to whole units, these sizes would wrap around to a small block.
  for (const std::size_t size : {kMax, kMax - 1, kMax - 62, kMax - 63, kMax - 64, kMax / 2}) {
    EXPECT_EQ(allocate_aligned(size), nullptr) << size;
    EXPECT_THROW(make_aligned(size), std::bad_alloc) << size;
  }
}

TEST(AlignedMemory, OwnedMemoryIsAligned) {
  const AlignedMemory memory = make_aligned(10);
  EXPECT_TRUE(is_aligned(memory.get()));
  std::memset(memory.get(), 1, 10);
}

TEST(AlignedMemory, IsAlignedLooksAtTheAddress) {
  alignas(64) const char block[128] = {};
  EXPECT_TRUE(is_aligned(block));
  EXPECT_TRUE(is_aligned(block + 64));
  for (const int offset : {1, 4, 16, 32, 63}) {
    EXPECT_FALSE(is_aligned(block + offset)) << offset;
  }
  EXPECT_TRUE(is_aligned(nullptr));
}

}  // namespace
}  // namespace cyxla

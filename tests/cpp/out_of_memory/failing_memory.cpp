// SPDX-License-Identifier: Apache-2.0
#include "out_of_memory/failing_memory.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace cyxla::test {
namespace {

int (*inside_plugin)() = nullptr;
thread_local int remaining = 0;  // allocations up to and including the failing one
thread_local bool has_failed = false;
thread_local std::int64_t num_blocks = 0;

bool is_ours() noexcept { return inside_plugin != nullptr && inside_plugin() == 0; }

// Returns whether the allocation may succeed.
bool grant() noexcept {
  if (!is_ours()) {
    return true;
  }
  if (remaining > 0 && --remaining == 0) {
    has_failed = true;
    return false;
  }
  ++num_blocks;
  return true;
}

void give_back(void* block) noexcept {
  if (block != nullptr && is_ours()) {
    --num_blocks;
  }
}

void* require(void* block) {
  if (block == nullptr) {
    throw std::bad_alloc();
  }
  return block;
}

}  // namespace

void FailingMemory::fail(int nth) noexcept {
  remaining = nth;
  has_failed = false;
}
bool FailingMemory::failed() noexcept { return has_failed; }
std::int64_t FailingMemory::blocks() noexcept { return num_blocks; }
void FailingMemory::set_inside_plugin(int (*inside)()) noexcept { inside_plugin = inside; }

}  // namespace cyxla::test

// The linker redirects cyxla's calls of aligned_alloc and free to these.
extern "C" {
void* __real_aligned_alloc(std::size_t alignment, std::size_t size);
void __real_free(void* block);
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size);
void __wrap_free(void* block);

void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  return cyxla::test::grant() ? __real_aligned_alloc(alignment, size) : nullptr;
}
void __wrap_free(void* block) {
  cyxla::test::give_back(block);
  __real_free(block);
}
}

void* operator new(std::size_t size) {
  return cyxla::test::require(cyxla::test::grant() ? std::malloc(size) : nullptr);
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return cyxla::test::grant() ? std::malloc(size) : nullptr;
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return cyxla::test::require(
      cyxla::test::grant() ? __real_aligned_alloc(unit, (size + unit - 1) / unit * unit) : nullptr);
}
void operator delete(void* block) noexcept {
  cyxla::test::give_back(block);
  __real_free(block);
}
void operator delete(void* block, std::size_t /*size*/) noexcept { operator delete(block); }
void operator delete(void* block, const std::nothrow_t& /*tag*/) noexcept {
  operator delete(block);
}
void operator delete(void* block, std::align_val_t /*alignment*/) noexcept {
  operator delete(block);
}
void operator delete(void* block, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  operator delete(block);
}

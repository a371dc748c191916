// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Python.h>

#include <array>
#include <cstddef>
#include <utility>

#include "base/aligned_memory.h"

namespace cyxla::glue {

// Owns one call's converted inputs, at 64-byte-aligned addresses, and the Py_buffers that the call
// reads. Lives on the stack of the call; its destructor needs the GIL.
class Arena {
 public:
  Arena() noexcept {}  // NOLINT(modernize-use-equals-default): that would zero small_
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    while (held_ != nullptr) {
      PyBuffer_Release(&held_->view);
      held_ = held_->next;
    }
    while (blocks_ != nullptr) {
      free_aligned(std::exchange(blocks_, *static_cast<void**>(blocks_)));
    }
  }

  // Null if out of memory.
  char* take(std::size_t size_bytes) noexcept {
    const std::size_t rounded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (rounded <= small_.size() - used_) {
      return &small_[std::exchange(used_, used_ + rounded)];
    }
    // A block begins with the address of the previous block.
    void* const block = allocate_aligned(rounded + kAlignment);
    if (block == nullptr) {
      return nullptr;
    }
    *static_cast<void**>(block) = std::exchange(blocks_, block);
    return static_cast<char*>(block) + kAlignment;
  }

  // Takes ownership of a buffer; false if out of memory.
  bool hold(const Py_buffer& view) noexcept {
    auto* const held = reinterpret_cast<Held*>(take(sizeof(Held)));
    if (held != nullptr) {
      *held = {view, std::exchange(held_, held)};
    }
    return held != nullptr;
  }

 private:
  struct Held {
    Py_buffer view;
    Held* next;
  };
  alignas(kAlignment) std::array<char, 1024> small_;
  std::size_t used_ = 0;
  void* blocks_ = nullptr;
  Held* held_ = nullptr;
};

}  // namespace cyxla::glue

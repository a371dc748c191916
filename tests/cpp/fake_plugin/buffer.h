// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "client.h"
#include "completion.h"
#include "object.h"
#include "program.h"

// Owned by the caller until Buffer_Destroy. Its memory is its own and kept for the next use of the
// object, or the caller's when it is a view.
struct PJRT_Buffer : fake_plugin::Object<PJRT_Buffer> {
  PJRT_Client* client;
  PJRT_Buffer_Type element_type;
  std::array<std::int64_t, fake_plugin::kMaxRank> dimensions;
  std::size_t rank;
  std::size_t size_bytes;
  void* data;  // null when there are no elements
  bool may_be_donated;
  bool was_donated;
  fake_plugin::CompletionReference ready;
  std::atomic<int> uses = 0;  // tasks that read or write it

  void* memory = nullptr;
  std::size_t capacity = 0;

  void (*on_delete)(void* data, void* user_arg) = nullptr;
  void* on_delete_arg = nullptr;

  bool has_type(const fake_plugin::ArrayType& type) const noexcept;
};

namespace fake_plugin {

// A buffer that takes over the memory of another, which cannot be used any more; `ready` is the
// caller's to set.
PJRT_Buffer* take_over(PJRT_Buffer& donated);

// A buffer with memory of its own, not yet written; `ready` is the caller's to set.
PJRT_Buffer* make_buffer(PJRT_Client& client, PJRT_Buffer_Type element_type,
                         const std::int64_t* dimensions, std::size_t rank);

}  // namespace fake_plugin

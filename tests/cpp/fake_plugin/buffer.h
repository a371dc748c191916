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

// Owned by the caller until Buffer_Destroy. It owns its memory and keeps it for the next use of the
// object, except for a view, whose memory is the caller's.
struct PJRT_Buffer : fake_plugin::Object<PJRT_Buffer> {
  PJRT_Client* client;
  PJRT_Buffer_Type element_type;
  std::array<std::int64_t, fake_plugin::kMaxRank> dimensions;
  std::size_t rank;
  std::size_t size_bytes;
  void* data;  // null for an empty array
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

// Makes a buffer that takes over another's memory; the other must not be used any more. The caller
// sets `ready`.
PJRT_Buffer* take_over(PJRT_Buffer& donated);

// Makes a buffer with its own, uninitialized memory. The caller sets `ready`.
PJRT_Buffer* make_buffer(PJRT_Client& client, PJRT_Buffer_Type element_type,
                         const std::int64_t* dimensions, std::size_t rank);

}  // namespace fake_plugin

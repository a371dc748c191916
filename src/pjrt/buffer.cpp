// SPDX-License-Identifier: Apache-2.0
#include "pjrt/buffer.h"

#include <array>
#include <utility>

#include "pjrt/event.h"

namespace cyxla::pjrt {
namespace {

// For a higher rank, the plugin's own layout is used.
constexpr std::size_t kMaxRank = 32;

// Plugins call it without a null check when they destroy a view.
void ignore_deletion(void* /*device_buffer*/, void* /*user_arg*/) {}

Status buffer_from_host(const Client& client, const void* host_data, Shape shape,
                        PJRT_HostBufferSemantics semantics, Buffer& out, Event& done) noexcept {
  const Api& api = client.api();
  CYXLA_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer, args);
  args.client = client.get();
  args.data = host_data;
  args.type = static_cast<PJRT_Buffer_Type>(shape.element_type);
  args.dims = shape.dimensions.data();
  args.num_dims = shape.dimensions.size();
  args.host_buffer_semantics = semantics;
  args.device = client.device();
  Status status = guarded_call(api, CYXLA_SLOT(PJRT_Client_BufferFromHostBuffer), args);
  if (status.ok()) {
    out = Buffer(api, args.buffer);
    done = Event(api, args.done_with_host_buffer);
    if (!out) {
      return Status::nothing_given("PJRT_Client_BufferFromHostBuffer", "buffer");
    }
  }
  return status;
}

}  // namespace

Status make_view(const Client& client, void* host_data, Shape shape, Buffer& out) noexcept {
  const Api& api = client.api();
  CYXLA_PJRT_ARGS(PJRT_Client_CreateViewOfDeviceBuffer, args);
  args.client = client.get();
  args.device_buffer_ptr = host_data;
  args.dims = shape.dimensions.data();
  args.num_dims = shape.dimensions.size();
  args.element_type = static_cast<PJRT_Buffer_Type>(shape.element_type);
  args.device = client.device();
  args.on_delete_callback = ignore_deletion;
  Status status = guarded_call(api, CYXLA_SLOT(PJRT_Client_CreateViewOfDeviceBuffer), args);
  if (status.ok()) {
    out = Buffer(api, args.buffer);
    if (!out) {
      return Status::nothing_given("PJRT_Client_CreateViewOfDeviceBuffer", "buffer");
    }
  }
  return status;
}

Status copy_from_host(const Client& client, const void* host_data, Shape shape,
                      Buffer& out) noexcept {
  Event done;
  Status status = buffer_from_host(client, host_data, shape,
                                   PJRT_HostBufferSemantics_kImmutableOnlyDuringCall, out, done);
  return status.ok() && done ? await(client.api(), done) : std::move(status);
}

Status make_destination(const Client& client, void* host_data, Shape shape, Buffer& out) noexcept {
  Event done;  // completes when the buffer is destroyed, so there is nothing to wait for
  return buffer_from_host(client, host_data, shape, PJRT_HostBufferSemantics_kMutableZeroCopy, out,
                          done);
}

Status copy_to_host(const Api& api, PJRT_Buffer* buffer, Shape shape, void* host_data,
                    std::size_t size_bytes) noexcept {
  std::array<std::int64_t, kMaxRank> minor_to_major = {};
  const std::size_t rank = shape.dimensions.size();
  PJRT_Buffer_MemoryLayout layout = {};
  layout.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.minor_to_major_size = rank;
  for (std::size_t i = 0; i < rank && rank <= kMaxRank; ++i) {
    minor_to_major[i] = static_cast<std::int64_t>(rank - 1 - i);
  }

  CYXLA_PJRT_ARGS(PJRT_Buffer_ToHostBuffer, args);
  args.src = buffer;
  args.host_layout = rank > 1 && rank <= kMaxRank ? &layout : nullptr;
  args.dst = host_data;
  args.dst_size = size_bytes;
  Status status = guarded_call(api, CYXLA_SLOT(PJRT_Buffer_ToHostBuffer), args);
  if (!status.ok()) {
    return status;
  }
  const Event done(api, args.event);
  return done ? await(api, done) : Status();
}

Status data_pointer(const Api& api, PJRT_Buffer* buffer, const void*& out) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Buffer_UnsafePointer, args);
  args.buffer = buffer;
  Status status = guarded_call(api, CYXLA_SLOT(PJRT_Buffer_UnsafePointer), args);
  out = reinterpret_cast<const void*>(args.buffer_pointer);
  if (status.ok() && out == nullptr) {
    return Status::nothing_given("PJRT_Buffer_UnsafePointer", "address");
  }
  return status;
}

Status await_contents(const Api& api, PJRT_Buffer* buffer) noexcept {
  CYXLA_PJRT_ARGS(PJRT_Buffer_ReadyEvent, args);
  args.buffer = buffer;
  Status status = guarded_call(api, CYXLA_SLOT(PJRT_Buffer_ReadyEvent), args);
  if (!status.ok()) {
    return status;
  }
  const Event ready(api, args.event);
  return ready ? await(api, ready) : Status::nothing_given("PJRT_Buffer_ReadyEvent", "event");
}

bool is_on_cpu(const Api& api, PJRT_Buffer* buffer) noexcept {
  if (!api.has(CYXLA_SLOT(PJRT_Buffer_IsOnCpu))) {
    return false;
  }
  CYXLA_PJRT_ARGS(PJRT_Buffer_IsOnCpu, args);
  args.buffer = buffer;
  const Status status = guarded_call(api, CYXLA_SLOT(PJRT_Buffer_IsOnCpu), args);
  return status.ok() && args.is_on_cpu;
}

bool can_make_views(const Api& api) noexcept {
  return api.has(CYXLA_SLOT(PJRT_Client_CreateViewOfDeviceBuffer));
}

bool can_read_data_pointer(const Api& api) noexcept {
  return api.has(CYXLA_SLOT(PJRT_Buffer_UnsafePointer));
}

}  // namespace cyxla::pjrt

// SPDX-License-Identifier: Apache-2.0
#include "buffer.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "error.h"
#include "settings.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) (void(address), void(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (void(address), void(size))
#endif

namespace fake_plugin {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr int kGarbage = 0xdd;  // contents of memory before it is written and after it was freed

PJRT_Buffer* make_shaped(fake_plugin_kind kind, PJRT_Client& client, PJRT_Buffer_Type element_type,
                         const std::int64_t* dimensions, std::size_t rank) {
  PJRT_Buffer* buffer = PJRT_Buffer::make(kind);
  buffer->client = &client;
  buffer->element_type = element_type;
  std::copy_n(dimensions, rank, buffer->dimensions.begin());
  buffer->rank = rank;
  buffer->size_bytes = itemsize(element_type);
  for (std::size_t i = 0; i < rank; ++i) {
    buffer->size_bytes *= static_cast<std::size_t>(dimensions[i]);
  }
  buffer->data = nullptr;
  buffer->may_be_donated = false;
  buffer->was_donated = false;
  buffer->uses = 0;
  buffer->on_delete = nullptr;
  client.children.fetch_add(1, std::memory_order_relaxed);
  return buffer;
}

void own_memory(PJRT_Buffer& buffer) {
  if (buffer.size_bytes == 0) {
    return;
  }
  if (buffer.capacity < buffer.size_bytes) {
    std::free(buffer.memory);
    buffer.capacity = (buffer.size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    buffer.memory = std::aligned_alloc(kAlignment, buffer.capacity);
  }
  ASAN_UNPOISON_MEMORY_REGION(buffer.memory, buffer.size_bytes);
  std::memset(buffer.memory, kGarbage, buffer.size_bytes);
  buffer.data = buffer.memory;
}

PJRT_Error* check_shape(PJRT_Client* client, const PJRT_Device* device, PJRT_Buffer_Type type,
                        const std::int64_t* dimensions, std::size_t rank, const char* where) {
  if (!PJRT_Client::check(client, where)) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a client");
  }
  if (device == nullptr || device->client != client) {
    violation(where, "not a device of the client");
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a device of the client");
  }
  if (itemsize(type) == 0) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "unsupported element type %d",
                      static_cast<int>(type));
  }
  if (rank > kMaxRank || std::any_of(dimensions, dimensions + rank,
                                     [](std::int64_t dimension) { return dimension < 0; })) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "impossible dimensions");
  }
  return nullptr;
}

// The end of a copy from the host. The data was already copied during the call.
struct Arrival : Task {
  void run() noexcept override {
    take_time(false);
    buffer->uses.fetch_sub(1);
    completion->complete(std::nullopt);
    completion.reset();
    Pool<Arrival>::give(this);
  }

  PJRT_Buffer* buffer = nullptr;
  CompletionReference completion;
  Arrival* next_free = nullptr;
};

// Makes a buffer in the caller's memory, which a program may write once the buffer is donated. The
// event for the end of its use never completes, because callers cannot wait for it before they give
// the buffer up.
PJRT_Error* make_aliasing_buffer(PJRT_Client_BufferFromHostBuffer_Args& args) {
  PJRT_Buffer* buffer =
      make_shaped(FAKE_PLUGIN_VIEW, *args.client, args.type, args.dims, args.num_dims);
  buffer->data = const_cast<void*>(args.data);
  buffer->may_be_donated = true;
  buffer->ready = CompletionReference::make();
  buffer->ready->complete(std::nullopt);
  args.buffer = buffer;
  args.done_with_host_buffer =
      make_event(Function::PJRT_Client_BufferFromHostBuffer, CompletionReference::make());
  return nullptr;
}

PJRT_Error* not_a_buffer() { return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a buffer"); }

}  // namespace

PJRT_Buffer* make_buffer(PJRT_Client& client, PJRT_Buffer_Type element_type,
                         const std::int64_t* dimensions, std::size_t rank) {
  PJRT_Buffer* buffer = make_shaped(FAKE_PLUGIN_BUFFER, client, element_type, dimensions, rank);
  own_memory(*buffer);
  return buffer;
}

PJRT_Buffer* take_over(PJRT_Buffer& donated) {
  PJRT_Buffer* buffer = make_shaped(FAKE_PLUGIN_VIEW, *donated.client, donated.element_type,
                                    donated.dimensions.data(), donated.rank);
  buffer->data = donated.data;
  donated.was_donated = true;
  return buffer;
}

namespace implementation {

PJRT_Error* client_buffer_from_host_buffer(PJRT_Client_BufferFromHostBuffer_Args& args) {
  if (PJRT_Error* error = check_shape(args.client, args.device, args.type, args.dims, args.num_dims,
                                      "PJRT_Client_BufferFromHostBuffer");
      error != nullptr) {
    return error;
  }
  if (args.num_byte_strides != 0 || args.device_layout != nullptr || args.memory != nullptr) {
    return make_error(PJRT_Error_Code_UNIMPLEMENTED, "only dense arrays on the default memory");
  }
  if (args.host_buffer_semantics == PJRT_HostBufferSemantics_kMutableZeroCopy &&
      reinterpret_cast<std::uintptr_t>(args.data) % kAlignment == 0) {
    return make_aliasing_buffer(args);
  }
  PJRT_Buffer* buffer = make_buffer(*args.client, args.type, args.dims, args.num_dims);
  if (buffer->size_bytes != 0) {
    std::memcpy(buffer->data, args.data, buffer->size_bytes);
  }
  buffer->ready = CompletionReference::make();
  buffer->uses.fetch_add(1);
  Arrival* arrival = Pool<Arrival>::take();
  arrival->buffer = buffer;
  arrival->completion = buffer->ready;
  args.buffer = buffer;
  args.done_with_host_buffer = nullptr;
  if (setting(FAKE_PLUGIN_NULL_COPY_EVENTS) != 0) {
    arrival->run();
    return nullptr;
  }
  args.done_with_host_buffer =
      make_event(Function::PJRT_Client_BufferFromHostBuffer, buffer->ready);
  run_task(*args.client, *arrival);
  return nullptr;
}

PJRT_Error* client_create_view(PJRT_Client_CreateViewOfDeviceBuffer_Args& args) {
  constexpr const char* kWhere = "PJRT_Client_CreateViewOfDeviceBuffer";
  if (PJRT_Error* error = check_shape(args.client, args.device, args.element_type, args.dims,
                                      args.num_dims, kWhere);
      error != nullptr) {
    return error;
  }
  if (setting(FAKE_PLUGIN_VIEWS) == 2) {
    return make_error(PJRT_Error_Code_UNIMPLEMENTED, "views are not supported");
  }
  if (args.on_delete_callback == nullptr) {
    violation(kWhere, "null on_delete_callback, which real plugins call without looking");
  }
  if (reinterpret_cast<std::uintptr_t>(args.device_buffer_ptr) % kAlignment != 0) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "the address %p is not aligned to %zu bytes", args.device_buffer_ptr,
                      kAlignment);
  }
  PJRT_Buffer* view =
      make_shaped(FAKE_PLUGIN_VIEW, *args.client, args.element_type, args.dims, args.num_dims);
  view->data = args.device_buffer_ptr;
  if (setting(FAKE_PLUGIN_VIEWS) == 1) {
    own_memory(*view);
    if (view->size_bytes != 0) {
      std::memcpy(view->data, args.device_buffer_ptr, view->size_bytes);
    }
  }
  view->on_delete = args.on_delete_callback;
  view->on_delete_arg = args.on_delete_callback_arg;
  view->ready = CompletionReference::make();
  view->ready->complete(std::nullopt);
  args.buffer = view;
  return nullptr;
}

PJRT_Error* buffer_destroy(PJRT_Buffer_Destroy_Args& args) {
  PJRT_Buffer* buffer = args.buffer;
  if (buffer == nullptr || !PJRT_Buffer::check(buffer, "PJRT_Buffer_Destroy")) {
    return nullptr;
  }
  if (buffer->uses != 0) {
    violation("PJRT_Buffer_Destroy", "an execution or a copy still uses the buffer");
    while (buffer->uses != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  if (const std::int64_t delay_ms = setting(FAKE_PLUGIN_DESTROY_DELAY_MS); delay_ms > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
  }
  if (buffer->on_delete != nullptr) {
    buffer->on_delete(buffer->data, buffer->on_delete_arg);
  }
  if (buffer->data != nullptr && buffer->data == buffer->memory) {
    std::memset(buffer->memory, kGarbage, buffer->size_bytes);
    ASAN_POISON_MEMORY_REGION(buffer->memory, buffer->size_bytes);
  }
  buffer->data = nullptr;
  buffer->ready.reset();
  buffer->client->children.fetch_sub(1, std::memory_order_relaxed);
  buffer->retire();
  return nullptr;
}

PJRT_Error* buffer_is_on_cpu(PJRT_Buffer_IsOnCpu_Args& args) {
  if (!PJRT_Buffer::check(args.buffer, "PJRT_Buffer_IsOnCpu")) {
    return not_a_buffer();
  }
  args.is_on_cpu = setting(FAKE_PLUGIN_NOT_ON_CPU) == 0;
  return nullptr;
}

PJRT_Error* buffer_ready_event(PJRT_Buffer_ReadyEvent_Args& args) {
  if (!PJRT_Buffer::check(args.buffer, "PJRT_Buffer_ReadyEvent")) {
    return not_a_buffer();
  }
  args.event = make_event(Function::PJRT_Buffer_ReadyEvent, args.buffer->ready);
  return nullptr;
}

PJRT_Error* buffer_unsafe_pointer(PJRT_Buffer_UnsafePointer_Args& args) {
  if (!PJRT_Buffer::check(args.buffer, "PJRT_Buffer_UnsafePointer")) {
    return not_a_buffer();
  }
  if (const auto failure = args.buffer->ready->wait(); failure) {
    return make_error(*failure);
  }
  constexpr std::uintptr_t kDeviceAddress = 64;  // reading it crashes
  args.buffer_pointer = setting(FAKE_PLUGIN_NOT_ON_CPU) != 0
                            ? kDeviceAddress
                            : reinterpret_cast<std::uintptr_t>(args.buffer->data);
  return nullptr;
}

}  // namespace implementation
}  // namespace fake_plugin

bool PJRT_Buffer::has_type(const fake_plugin::ArrayType& type) const noexcept {
  return element_type == type.element_type && rank == type.dimensions.size() &&
         std::equal(type.dimensions.begin(), type.dimensions.end(), dimensions.begin());
}

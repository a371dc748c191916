// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pjrt/client.h"
#include "pjrt/handle.h"

namespace cyxla::pjrt {

// Element type and dimensions of a dense, row-major array. Borrows the dimensions.
struct Shape {
  std::int32_t element_type = 0;
  std::span<const std::int64_t> dimensions;
};

// Makes a buffer over the caller's memory, without a copy. The memory must be kAlignment-aligned
// and outlive the buffer; its contents may change between executions. Only for clients whose
// buffers alias host memory.
Status make_view(const Client& client, void* host_data, Shape shape, Buffer& out) noexcept;

// Makes a buffer with a copy of the host's data, which may change as soon as this returns.
Status copy_from_host(const Client& client, const void* host_data, Shape shape,
                      Buffer& out) noexcept;

// Makes a buffer to donate to a program, so that the output is written to the caller's memory. The
// memory must be kAlignment-aligned, and its contents are undefined until the output is ready. A
// client that cannot alias host memory copies, and the output is elsewhere.
Status make_destination(const Client& client, void* host_data, Shape shape, Buffer& out) noexcept;

// Copies a buffer's contents, row-major, to host memory. Returns when the copy is complete.
Status copy_to_host(const Api& api, PJRT_Buffer* buffer, Shape shape, void* host_data,
                    std::size_t size_bytes) noexcept;

// Waits for the buffer's contents and gives the address of its memory on the device.
Status data_pointer(const Api& api, PJRT_Buffer* buffer, const void*& out) noexcept;

// Waits for the buffer's contents and returns the error of the computation that produces them.
Status await_contents(const Api& api, PJRT_Buffer* buffer) noexcept;

bool is_on_cpu(const Api& api, PJRT_Buffer* buffer) noexcept;

// True when the plugin has the functions behind make_view and data_pointer.
bool can_make_views(const Api& api) noexcept;
bool can_read_data_pointer(const Api& api) noexcept;

}  // namespace cyxla::pjrt

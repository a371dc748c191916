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

// A buffer over memory that stays the caller's, without a copy. The memory must be
// kAlignment-aligned and outlive the buffer; it may change between executions. Only for clients
// whose buffers alias host memory.
Status make_view(const Client& client, void* host_data, Shape shape, Buffer& out) noexcept;

// A buffer with a copy of the host's data; the data may change as soon as this returns.
Status copy_from_host(const Client& client, const void* host_data, Shape shape,
                      Buffer& out) noexcept;

// A buffer to donate to a program, whose output then lies in the host's memory: the caller's, which
// must be kAlignment-aligned and is undefined until the output is there. A client that cannot alias
// host memory copies, and the output lies elsewhere.
Status make_destination(const Client& client, void* host_data, Shape shape, Buffer& out) noexcept;

// Copies a buffer's contents, row-major, to host memory and waits for the end of the copy.
Status copy_to_host(const Api& api, PJRT_Buffer* buffer, Shape shape, void* host_data,
                    std::size_t size_bytes) noexcept;

// The address of the buffer's memory on its device. Waits until the buffer's contents are there.
Status data_pointer(const Api& api, PJRT_Buffer* buffer, const void*& out) noexcept;

// Waits until the buffer's contents are there and gives the error that kept them from coming.
Status await_contents(const Api& api, PJRT_Buffer* buffer) noexcept;

bool is_on_cpu(const Api& api, PJRT_Buffer* buffer) noexcept;

// Whether the plugin has the functions behind make_view and data_pointer.
bool can_make_views(const Api& api) noexcept;
bool can_read_data_pointer(const Api& api) noexcept;

}  // namespace cyxla::pjrt

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "buffer.h"
#include "error.h"
#include "settings.h"

namespace fake_plugin {
namespace {

using MinorToMajor = std::array<std::int64_t, kMaxRank>;

bool is_row_major(const MinorToMajor& minor_to_major, std::size_t rank) noexcept {
  for (std::size_t i = 0; i < rank; ++i) {
    if (minor_to_major[i] != static_cast<std::int64_t>(rank - 1 - i)) {
      return false;
    }
  }
  return true;
}

// Copies row-major elements into a dense array of another order of dimensions.
void copy_permuted(const PJRT_Buffer& buffer, const MinorToMajor& minor_to_major,
                   void* destination) noexcept {
  std::array<std::size_t, kMaxRank> strides = {};
  std::size_t num_elements = 1;
  for (std::size_t i = 0; i < buffer.rank; ++i) {
    const auto dimension = static_cast<std::size_t>(minor_to_major[i]);
    strides[dimension] = num_elements;
    num_elements *= static_cast<std::size_t>(buffer.dimensions[dimension]);
  }
  const std::size_t size = itemsize(buffer.element_type);
  for (std::size_t element = 0; element < num_elements; ++element) {
    std::size_t rest = element;
    std::size_t target = 0;
    for (std::size_t i = buffer.rank; i-- > 0;) {
      const auto extent = static_cast<std::size_t>(buffer.dimensions[i]);
      target += rest % extent * strides[i];
      rest /= extent;
    }
    std::memcpy(static_cast<char*>(destination) + target * size,
                static_cast<const char*>(buffer.data) + element * size, size);
  }
}

struct CopyToHost : Task {
  void run() noexcept override {
    const auto failure = source->ready->wait();
    take_time(false);
    if (!failure && source->size_bytes != 0) {
      if (is_row_major(minor_to_major, source->rank)) {
        std::memcpy(destination, source->data, source->size_bytes);
      } else {
        copy_permuted(*source, minor_to_major, destination);
      }
    }
    source->uses.fetch_sub(1);
    completion->complete(failure);
    completion.reset();
    Pool<CopyToHost>::give(this);
  }

  PJRT_Buffer* source = nullptr;
  MinorToMajor minor_to_major = {};
  void* destination = nullptr;
  CompletionReference completion;
  CopyToHost* next_free = nullptr;
};

// False for layouts other than a dense permutation of the dimensions.
bool read_layout(const PJRT_Buffer_MemoryLayout* layout, std::size_t rank,
                 MinorToMajor& out) noexcept {
  if (layout == nullptr) {
    for (std::size_t i = 0; i < rank; ++i) {
      out[i] = static_cast<std::int64_t>(rank - 1 - i);
    }
    return true;
  }
  if (layout->type != PJRT_Buffer_MemoryLayout_Type_Tiled || layout->tiled.num_tiles != 0 ||
      layout->tiled.minor_to_major_size != rank) {
    return false;
  }
  std::copy_n(layout->tiled.minor_to_major, rank, out.begin());
  MinorToMajor sorted = out;
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(rank));
  for (std::size_t i = 0; i < rank; ++i) {
    if (sorted[i] != static_cast<std::int64_t>(i)) {
      return false;
    }
  }
  return true;
}

}  // namespace

namespace implementation {

PJRT_Error* buffer_to_host_buffer(PJRT_Buffer_ToHostBuffer_Args& args) {
  PJRT_Buffer* source = args.src;
  if (!PJRT_Buffer::check(source, "PJRT_Buffer_ToHostBuffer")) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a buffer");
  }
  MinorToMajor minor_to_major = {};
  if (!read_layout(args.host_layout, source->rank, minor_to_major)) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a layout of %zu dimensions",
                      source->rank);
  }
  if (setting(FAKE_PLUGIN_RECORD_EXECUTIONS) != 0) {
    if (args.host_layout == nullptr) {
      record_text(FAKE_PLUGIN_HOST_LAYOUT, "none");
    } else {
      record_numbers(FAKE_PLUGIN_HOST_LAYOUT, minor_to_major.data(), source->rank);
    }
  }
  if (args.dst == nullptr) {
    args.dst_size = source->size_bytes;
    return nullptr;
  }
  if (args.dst_size < source->size_bytes) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "dst_size is %zu, the buffer has %zu bytes",
                      args.dst_size, source->size_bytes);
  }
  source->uses.fetch_add(1);
  CopyToHost* copy = Pool<CopyToHost>::take();
  copy->source = source;
  copy->minor_to_major = minor_to_major;
  copy->destination = args.dst;
  copy->completion = CompletionReference::make();
  args.event = nullptr;
  if (setting(FAKE_PLUGIN_NULL_COPY_EVENTS) != 0) {
    copy->run();
    return nullptr;
  }
  args.event = make_event(Function::PJRT_Buffer_ToHostBuffer, copy->completion);
  run_task(*source->client, *copy);
  return nullptr;
}

}  // namespace implementation
}  // namespace fake_plugin

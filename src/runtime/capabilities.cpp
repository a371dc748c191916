// SPDX-License-Identifier: Apache-2.0
#include "runtime/capabilities.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/aligned_memory.h"
#include "pjrt/buffer.h"

namespace cyxla::runtime {
namespace {

constexpr std::size_t kElements = 16;
constexpr std::array<std::int64_t, 1> kDimensions = {kElements};
constexpr pjrt::Shape kShape = {PJRT_Buffer_Type_S32, kDimensions};
constexpr std::size_t kSizeBytes = kElements * sizeof(std::int32_t);

// True when the view shows later writes to the host's memory.
bool view_follows_host(const pjrt::Client& client, PJRT_Buffer* view, std::int32_t* host) {
  std::array<std::int32_t, kElements> seen = {};
  for (const std::int32_t value : {7, 11}) {
    std::fill_n(host, kElements, value);
    if (!pjrt::copy_to_host(client.api(), view, kShape, seen.data(), kSizeBytes).ok()) {
      return false;
    }
    if (!std::all_of(seen.begin(), seen.end(), [&](std::int32_t v) { return v == value; })) {
      return false;
    }
  }
  return true;
}

bool can_alias_inputs(const pjrt::Client& client) {
  if (!pjrt::can_make_views(client.api())) {
    return false;
  }
  const AlignedMemory memory = make_aligned(kSizeBytes);
  auto* host = static_cast<std::int32_t*>(memory.get());
  std::fill_n(host, kElements, 3);
  pjrt::Buffer view;
  if (!pjrt::make_view(client, host, kShape, view).ok()) {
    return false;
  }
  // A plugin for another device would interpret the host's address as one of its own, so check the
  // device before anything reads through the view.
  return pjrt::is_on_cpu(client.api(), view.get()) && view_follows_host(client, view.get(), host);
}

bool can_read_outputs_in_place(const pjrt::Client& client) {
  if (!pjrt::can_read_data_pointer(client.api())) {
    return false;
  }
  std::array<std::int32_t, kElements> source = {};
  for (std::size_t i = 0; i < kElements; ++i) {
    source[i] = static_cast<std::int32_t>(i * i + 1);
  }
  pjrt::Buffer buffer;
  const void* data = nullptr;
  if (!pjrt::copy_from_host(client, source.data(), kShape, buffer).ok() ||
      !pjrt::is_on_cpu(client.api(), buffer.get()) ||
      !pjrt::data_pointer(client.api(), buffer.get(), data).ok() || data == nullptr) {
    return false;
  }
  // The copy may still be running: on some plugins data_pointer does not wait.
  std::array<std::int32_t, kElements> copied = {};
  if (!pjrt::copy_to_host(client.api(), buffer.get(), kShape, copied.data(), kSizeBytes).ok()) {
    return false;
  }
  return copied == source &&
         std::equal(source.begin(), source.end(), static_cast<const std::int32_t*>(data));
}

}  // namespace

Capabilities probe_capabilities(const pjrt::Client& client) {
  return {can_alias_inputs(client), can_read_outputs_in_place(client)};
}

}  // namespace cyxla::runtime

// SPDX-License-Identifier: Apache-2.0
// How XLA's CPU backend calls a compiled kernel: xla/backends/cpu/runtime/kernel_c_api.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyxla::direct {

struct KernelArgument {
  void* data;
  std::size_t size_bytes;
};

struct KernelDimensions {
  std::uint64_t x;
  std::uint64_t y;
  std::uint64_t z;
};

struct KernelCallFrame {
  const KernelDimensions* num_workgroups;
  const KernelDimensions* workgroup_id;
  std::size_t num_arguments;
  const KernelArgument* arguments;  // arguments, then results
};

// Null on success.
using KernelFunction = const void*(const KernelCallFrame*);

}  // namespace cyxla::direct

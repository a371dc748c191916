// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cyxla::pjrt {

namespace ffi {
struct CallFrame;
struct Error;
struct ExecuteFrame;
}  // namespace ffi

// An array of a host callback, in the plugin's memory: dense, row-major, valid during the call.
struct HostArray {
  void* data = nullptr;
  std::int32_t element_type = 0;  // a PJRT_Buffer_Type; a token has no data
  std::span<const std::int64_t> dimensions;
  std::size_t size_bytes = 0;
};

// A call of one of JAX's host callbacks: a checked view of the plugin's call frame. Lives on the
// handler's stack; used by the calling thread only.
class HostCall {
 public:
  // Returns null, or what is wrong with the frame.
  [[nodiscard]] const char* read(const ffi::ExecuteFrame& frame) noexcept;

  // The attribute `index`, which identifies the function.
  std::uint64_t function() const noexcept { return function_; }
  std::size_t num_arguments() const noexcept { return num_arguments_; }
  std::size_t num_results() const noexcept { return num_results_; }
  HostArray argument(std::size_t i) const noexcept;
  HostArray result(std::size_t i) const noexcept;

 private:
  const ffi::ExecuteFrame* frame_ = nullptr;
  std::uint64_t function_ = 0;
  std::size_t num_arguments_ = 0, num_results_ = 0;
};

// The zero-terminated error text of a failed host callback.
using HostCallError = std::array<char, 2048>;

// Reads a callback's arguments and fills its results. Returns false after writing the error; never
// throws. Called from any thread, the plugin's own included.
using HostFunction = bool (*)(const HostCall& call, HostCallError& error);

// Call this before compiling a program with host callbacks. A later call replaces the function.
void set_host_function(HostFunction function) noexcept;

// The FFI handler that calls the host function, for FfiRegistry. It reports version 0.1 of the FFI,
// which every plugin accepts, because it uses nothing newer.
[[nodiscard]] ffi::Error* host_callback_handler(ffi::CallFrame* frame);

// The custom-call targets of JAX's host callbacks on CPUs, whose frame HostCall reads.
inline constexpr std::array<const char*, 2> kHostCallbackTargets = {
    "xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback"};

}  // namespace cyxla::pjrt

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

// One array of a host callback, in the plugin's memory: dense and row-major, valid during the call.
struct HostArray {
  void* data = nullptr;
  std::int32_t element_type = 0;  // PJRT_Buffer_Type; a token has no data
  std::span<const std::int64_t> dimensions;
  std::size_t size_bytes = 0;
};

// A custom call of JAX's for a function on the host: a checked view of the plugin's call frame.
// Lives on the handler's stack, used by the calling thread only.
class HostCall {
 public:
  // Null, or what is wrong with the frame.
  [[nodiscard]] const char* read(const ffi::ExecuteFrame& frame) noexcept;

  // Which function: the attribute `index`.
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

// Text of a failed host callback, with a final zero.
using HostCallError = std::array<char, 2048>;

// What is called for a custom call: reads the arguments and fills the results. False after writing
// the error; never throws. Any thread may be the caller, the plugin's own too.
using HostFunction = bool (*)(const HostCall& call, HostCallError& error);

// To be set before a program with host callbacks is compiled; later ones replace it.
void set_host_function(HostFunction function) noexcept;

// The FFI handler that calls it, for pjrt::register_ffi_handler. It answers the metadata request
// with version 0.1 of the FFI, which every plugin takes, as it uses nothing newer.
[[nodiscard]] ffi::Error* host_callback_handler(ffi::CallFrame* frame);

// Custom-call targets by which JAX calls the host of a CPU: as the frame above describes it.
inline constexpr std::array<const char*, 2> kHostCallbackTargets = {
    "xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback"};

}  // namespace cyxla::pjrt

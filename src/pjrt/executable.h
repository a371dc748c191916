// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pjrt/handle.h"
#include "pjrt/optimized_program.h"

namespace cyxla::pjrt {

// Sizes in bytes of a compiled program; std::nullopt where the plugin does not report them.
struct MemoryStatistics {
  std::optional<std::int64_t> code_bytes;
  std::optional<std::int64_t> argument_bytes;
  std::optional<std::int64_t> output_bytes;
  std::optional<std::int64_t> temporary_bytes;
};

// A compiled program on its device. Must be destroyed before its client; many threads may execute
// it at once.
class [[nodiscard]] LoadedExecutable {
 public:
  LoadedExecutable() noexcept = default;
  LoadedExecutable(const Api& api, PJRT_LoadedExecutable* executable)
      : api_(&api), executable_(api, executable) {}

  PJRT_LoadedExecutable* get() const noexcept { return executable_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(executable_); }
  void reset() noexcept { executable_.reset(); }

  // Throws Error (kCompile).
  std::vector<ValueType> output_types() const;
  // `serialized` saves a call of serialize() if the caller already has its result.
  MemoryStatistics memory_statistics(const std::string& serialized = {}) const;
  // Returns the bytes that the plugin's own loader reads; empty when it cannot serialize.
  std::string serialize() const;
  // Returns the floating-point operations of one execution, from the plugin's cost analysis.
  std::optional<double> flops() const;
  // Returns std::nullopt when the plugin does not support it.
  std::optional<OptimizedProgram> optimized_program() const;

 private:
  Handle<PJRT_Executable> executable() const;

  const Api* api_ = nullptr;
  Handle<PJRT_LoadedExecutable> executable_;
};

}  // namespace cyxla::pjrt

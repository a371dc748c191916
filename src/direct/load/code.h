// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "direct/load/kernel.h"
#include "direct/load/symbols.h"

namespace cyxla::direct {

struct Unmap {
  std::size_t size_bytes = 0;
  void operator()(std::byte* memory) const noexcept;
};

// The machine code of a program's kernels, relocated in memory of its own. The memory is first
// writable and then executable, never both. Owned by an Executable, which must outlive every call
// of a kernel. Immutable, so any thread may call the kernels.
class [[nodiscard]] Code {
 public:
  // Throws Refusal. Keeps no reference to the objects or symbols.
  Code(const std::vector<std::string>& objects, const ExternalSymbols& symbols);

  // Throws Refusal when no object defines the kernel.
  KernelFunction* kernel(std::string_view name) const;
  std::size_t size_bytes() const noexcept { return memory_.get_deleter().size_bytes; }

 private:
  std::unique_ptr<std::byte, Unmap> memory_;
  std::map<std::string, KernelFunction*, std::less<>> kernels_;
};

}  // namespace cyxla::direct

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cyxla::direct {

// A checked view of one relocatable object (ET_REL, x86-64) as XLA emits it: read-only code and
// data with 64-bit absolute relocations. Every offset and index that it returns is inside the
// object. The bytes must outlive it. Immutable, so any thread may read it.
class ElfObject {
 public:
  // A section to load. Unwind tables are left out, because kernels do not throw.
  struct Section {
    std::string_view contents;
    std::size_t alignment = 1;
    bool is_code = false;
  };
  struct Symbol {
    std::string_view name;
    std::optional<std::size_t> section;  // index into sections(); absent: defined elsewhere
    std::size_t offset = 0;
    std::size_t size_bytes = 0;
    bool is_kernel = false;  // a function that other objects may call
  };
  // The address of a symbol plus `addend`, for the 8 bytes at `offset` of a section.
  struct Relocation {
    std::size_t section = 0;
    std::size_t offset = 0;
    std::size_t symbol = 0;  // index into symbols()
    std::uint64_t addend = 0;
  };

  // Throws Refusal.
  explicit ElfObject(std::string_view bytes);

  const std::vector<Section>& sections() const noexcept { return sections_; }
  // The kernels and the symbols of relocations.
  const std::vector<Symbol>& symbols() const noexcept { return symbols_; }
  const std::vector<Relocation>& relocations() const noexcept { return relocations_; }

 private:
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::vector<Relocation> relocations_;
};

}  // namespace cyxla::direct

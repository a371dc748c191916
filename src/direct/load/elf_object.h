// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cyxla::direct {

// A checked view of one relocatable object (ET_REL, x86-64) as XLA emits it: read-only code and
// data and 64-bit absolute relocations, nothing else. Every offset and index that it hands out lies
// inside the object. Borrows the bytes; immutable, so any thread may read it.
class ElfObject {
 public:
  // A section that goes to memory. Unwind tables are left out: the kernels do not throw.
  struct Section {
    std::string_view contents;
    std::size_t alignment = 1;
    bool is_code = false;
  };
  struct Symbol {
    std::string_view name;
    std::optional<std::size_t> section;  // index into sections(); nothing: defined elsewhere
    std::size_t offset = 0;
    std::size_t size_bytes = 0;
    bool is_kernel = false;  // a function that other objects may call
  };
  // Store the symbol's address plus `addend` in the 8 bytes at `offset` of a section.
  struct Relocation {
    std::size_t section = 0;
    std::size_t offset = 0;
    std::size_t symbol = 0;  // index into symbols()
    std::uint64_t addend = 0;
  };

  // Throws Refusal.
  explicit ElfObject(std::string_view bytes);

  const std::vector<Section>& sections() const noexcept { return sections_; }
  // Only the symbols that a relocation or a caller can need: the kernels, and those relocated
  // against.
  const std::vector<Symbol>& symbols() const noexcept { return symbols_; }
  const std::vector<Relocation>& relocations() const noexcept { return relocations_; }

 private:
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::vector<Relocation> relocations_;
};

}  // namespace cyxla::direct

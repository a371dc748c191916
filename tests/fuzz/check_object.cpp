// SPDX-License-Identifier: Apache-2.0
#include "check_object.h"

#include <bit>
#include <cstdint>

#include "require.h"

namespace cyxla::fuzz {

void check_object(const direct::ElfObject& object) {
  const auto& sections = object.sections();
  for (const direct::ElfObject::Section& section : sections) {
    require(std::has_single_bit(section.alignment), "alignment of a section");
  }
  for (const direct::ElfObject::Symbol& symbol : object.symbols()) {
    require(symbol.section || !symbol.is_kernel, "a kernel is not defined");
    if (symbol.section) {
      require(*symbol.section < sections.size(), "section of a symbol");
      const std::size_t size_bytes = sections[*symbol.section].contents.size();
      require(symbol.offset <= size_bytes && symbol.size_bytes <= size_bytes - symbol.offset,
              "a symbol leaves its section");
      require(sections[*symbol.section].is_code || !symbol.is_kernel, "a kernel is not code");
    }
  }
  for (const direct::ElfObject::Relocation& relocation : object.relocations()) {
    require(relocation.symbol < object.symbols().size(), "symbol of a relocation");
    require(relocation.section < sections.size(), "section of a relocation");
    const std::size_t size_bytes = sections[relocation.section].contents.size();
    require(size_bytes >= sizeof(std::uint64_t) &&
                relocation.offset <= size_bytes - sizeof(std::uint64_t),
            "a relocation leaves its section");
  }
}

}  // namespace cyxla::fuzz

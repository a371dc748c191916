// SPDX-License-Identifier: Apache-2.0
#include "direct/load/elf_object.h"

#include "direct/load/system.h"
#include "direct/refusal.h"

#if defined(CYXLA_CALLS_KERNELS)

#include <elf.h>

#include <bit>
#include <cstring>
#include <string>

namespace cyxla::direct {
namespace {

constexpr std::size_t kMaxSectionAlignment = 4096;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);
// Not in every <elf.h>.
constexpr std::uint32_t kUnwindSection = 0x70000001;

[[noreturn]] void refuse(const std::string& what) {
  throw Refusal(Reason::kObjectFile, "a kernel's object file " + what);
}

class ObjectReader {
 public:
  explicit ObjectReader(std::string_view bytes) : bytes_(bytes) {
    read_file_header();
    read_section_headers();
    select_sections();
    find_symbol_table();
    read_symbols();
    for (const Elf64_Shdr& header : headers_) {
      read_relocations(header);
    }
  }

  std::vector<ElfObject::Section> sections;
  std::vector<ElfObject::Symbol> symbols;
  std::vector<ElfObject::Relocation> relocations;

 private:
  std::string_view slice(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      refuse("is truncated");
    }
    return bytes_.substr(offset, size);
  }

  // Element `index` of a table of C structs that may lie at any address.
  template <typename Struct>
  static Struct entry(std::string_view table, std::size_t index) {
    Struct value;
    std::memcpy(&value, table.data() + index * sizeof(Struct), sizeof(Struct));
    return value;
  }

  std::string_view contents(const Elf64_Shdr& header) {
    // Sections of a valid file do not overlap, so together they are not larger than the file. This
    // bounds the memory and time that an invalid file can take.
    const std::string_view bytes = slice(header.sh_offset, header.sh_size);
    used_bytes_ += bytes.size();
    if (used_bytes_ > bytes_.size()) {
      refuse("has sections that overlap");
    }
    return bytes;
  }

  static std::string_view string_at(std::string_view table, std::size_t offset) {
    const std::size_t end = table.find('\0', offset);
    if (offset >= table.size() || end == std::string_view::npos) {
      refuse("has a name outside its string table");
    }
    return table.substr(offset, end - offset);
  }

  void read_file_header() {
    file_ = entry<Elf64_Ehdr>(slice(0, sizeof(Elf64_Ehdr)), 0);
    if (std::memcmp(file_.e_ident, ELFMAG, SELFMAG) != 0) {
      refuse("is not in ELF format");
    }
    if (file_.e_ident[EI_CLASS] != ELFCLASS64 || file_.e_ident[EI_DATA] != ELFDATA2LSB ||
        file_.e_machine != EM_X86_64 || file_.e_ident[EI_VERSION] != EV_CURRENT ||
        file_.e_version != EV_CURRENT) {
      refuse("is not for x86-64 (machine " + std::to_string(file_.e_machine) + ")");
    }
    if (file_.e_type != ET_REL) {
      refuse("has ELF type " + std::to_string(file_.e_type) + " and is not relocatable");
    }
  }

  void read_section_headers() {
    if (file_.e_shnum == 0 || file_.e_shentsize != sizeof(Elf64_Shdr)) {
      refuse("has no section table of the usual form");
    }
    const std::string_view table =
        slice(file_.e_shoff, std::uint64_t{file_.e_shnum} * sizeof(Elf64_Shdr));
    for (std::size_t i = 0; i < file_.e_shnum; ++i) {
      headers_.push_back(entry<Elf64_Shdr>(table, i));
    }
    if (file_.e_shstrndx >= headers_.size()) {
      refuse("has no section names");
    }
    names_ = slice(headers_[file_.e_shstrndx].sh_offset, headers_[file_.e_shstrndx].sh_size);
  }

  bool is_unwind_table(const Elf64_Shdr& header) const {
    return string_at(names_, header.sh_name) == ".eh_frame" &&
           (header.sh_type == SHT_PROGBITS || header.sh_type == kUnwindSection);
  }

  void select_sections() {
    loaded_as_.assign(headers_.size(), kNone);
    for (std::size_t i = 0; i < headers_.size(); ++i) {
      const Elf64_Shdr& header = headers_[i];
      // Some compilers leave an empty .data and .bss in every object.
      if ((header.sh_flags & SHF_ALLOC) == 0 || header.sh_size == 0) {
        continue;
      }
      const std::string name(string_at(names_, header.sh_name));
      constexpr std::uint64_t kKnownFlags =
          SHF_ALLOC | SHF_EXECINSTR | SHF_MERGE | SHF_STRINGS | 0x10000000 /* SHF_X86_64_LARGE */;
      if ((header.sh_flags & ~kKnownFlags) != 0) {
        refuse("has the section " + name + " with flags " + std::to_string(header.sh_flags) +
               ", which is more than read-only code or data");
      }
      if (is_unwind_table(header) || header.sh_type == SHT_NOTE) {
        continue;
      }
      if (header.sh_type != SHT_PROGBITS) {
        refuse("has the section " + name + " of type " + std::to_string(header.sh_type));
      }
      const std::uint64_t alignment = header.sh_addralign == 0 ? 1 : header.sh_addralign;
      if (!std::has_single_bit(alignment) || alignment > kMaxSectionAlignment) {
        refuse("has the section " + name + " with alignment " + std::to_string(alignment));
      }
      loaded_as_[i] = sections.size();
      sections.push_back({contents(header), alignment, (header.sh_flags & SHF_EXECINSTR) != 0});
    }
  }

  void find_symbol_table() {
    for (std::size_t i = 0; i < headers_.size(); ++i) {
      if (headers_[i].sh_type == SHT_SYMTAB_SHNDX) {
        refuse("has more sections than it can count");
      }
      if (headers_[i].sh_type == SHT_SYMTAB) {
        if (symbol_table_ != kNone) {
          refuse("has two symbol tables");
        }
        symbol_table_ = i;
      }
    }
    if (symbol_table_ == kNone) {
      refuse("has no symbol table");
    }
    const Elf64_Shdr& header = headers_[symbol_table_];
    if (header.sh_entsize != sizeof(Elf64_Sym) || header.sh_link >= headers_.size()) {
      refuse("has a symbol table of an unusual form");
    }
    symbol_bytes_ = contents(header);
    strings_ = slice(headers_[header.sh_link].sh_offset, headers_[header.sh_link].sh_size);
    symbol_as_.assign(symbol_bytes_.size() / sizeof(Elf64_Sym), kNone);
  }

  void read_symbols() {
    for (std::size_t i = 0; i < symbol_as_.size(); ++i) {
      const auto symbol = entry<Elf64_Sym>(symbol_bytes_, i);
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF &&
          ELF64_ST_BIND(symbol.st_info) != STB_LOCAL) {
        use_symbol(i);
      }
    }
  }

  // The index in `symbols` of entry `index` of the symbol table.
  std::size_t use_symbol(std::size_t index) {
    if (index == 0 || index >= symbol_as_.size()) {
      refuse("refers to a symbol outside its table");
    }
    if (symbol_as_[index] != kNone) {
      return symbol_as_[index];
    }
    const auto raw = entry<Elf64_Sym>(symbol_bytes_, index);
    const unsigned type = ELF64_ST_TYPE(raw.st_info);
    ElfObject::Symbol symbol;
    symbol.name = string_at(strings_, raw.st_name);
    if (type != STT_NOTYPE && type != STT_OBJECT && type != STT_FUNC && type != STT_SECTION) {
      refuse("has the symbol " + std::string(symbol.name) + " of type " + std::to_string(type));
    }
    if (raw.st_shndx != SHN_UNDEF) {
      define(symbol, raw);
      symbol.is_kernel = type == STT_FUNC && ELF64_ST_BIND(raw.st_info) != STB_LOCAL;
      if (symbol.is_kernel && !sections[*symbol.section].is_code) {
        refuse("has the kernel " + std::string(symbol.name) + " outside its code");
      }
    } else if (ELF64_ST_BIND(raw.st_info) != STB_GLOBAL) {
      refuse("has the weak symbol " + std::string(symbol.name));
    }
    symbol_as_[index] = symbols.size();
    symbols.push_back(symbol);
    return symbol_as_[index];
  }

  void define(ElfObject::Symbol& symbol, const Elf64_Sym& raw) const {
    const std::size_t section = raw.st_shndx;
    if (section >= headers_.size() || loaded_as_[section] == kNone) {
      refuse("has the symbol " + std::string(symbol.name) + " outside its code and data");
    }
    symbol.section = loaded_as_[section];
    const std::size_t available = sections[*symbol.section].contents.size();
    if (raw.st_value > available || raw.st_size > available - raw.st_value) {
      refuse("has the symbol " + std::string(symbol.name) + " beyond the end of its section");
    }
    symbol.offset = raw.st_value;
    symbol.size_bytes = raw.st_size;
  }

  void read_relocations(const Elf64_Shdr& header) {
    if (header.sh_type != SHT_RELA && header.sh_type != SHT_REL) {
      return;
    }
    if (header.sh_info >= headers_.size()) {
      refuse("has relocations without a section");
    }
    const Elf64_Shdr& target = headers_[header.sh_info];
    if ((target.sh_flags & SHF_ALLOC) == 0) {
      return;
    }
    if (header.sh_type != SHT_RELA || header.sh_entsize != sizeof(Elf64_Rela) ||
        header.sh_link != symbol_table_) {
      refuse("has relocations of an unusual form");
    }
    const bool in_unwind_table = is_unwind_table(target);
    const std::size_t section = loaded_as_[header.sh_info];
    if (section == kNone && !in_unwind_table) {
      refuse("has relocations of a section that is not loaded");
    }
    const std::string_view table = contents(header);
    for (std::size_t i = 0; i < table.size() / sizeof(Elf64_Rela); ++i) {
      const auto relocation = entry<Elf64_Rela>(table, i);
      const std::uint64_t type = ELF64_R_TYPE(relocation.r_info);
      if (type != R_X86_64_64 && !(in_unwind_table && type == R_X86_64_PC64)) {
        refuse("has a relocation of type " + std::to_string(type));
      }
      if (in_unwind_table) {
        continue;
      }
      const std::size_t available = sections[section].contents.size();
      if (available < sizeof(std::uint64_t) ||
          relocation.r_offset > available - sizeof(std::uint64_t)) {
        refuse("has a relocation beyond the end of its section");
      }
      relocations.push_back({section, relocation.r_offset,
                             use_symbol(ELF64_R_SYM(relocation.r_info)),
                             static_cast<std::uint64_t>(relocation.r_addend)});
    }
  }

  std::string_view bytes_;
  std::size_t used_bytes_ = 0;
  Elf64_Ehdr file_ = {};
  std::vector<Elf64_Shdr> headers_;
  std::string_view names_;
  std::vector<std::size_t> loaded_as_;  // by section header: index into `sections` or kNone
  std::size_t symbol_table_ = kNone;
  std::string_view symbol_bytes_;
  std::string_view strings_;
  std::vector<std::size_t> symbol_as_;  // by entry of the symbol table: index into `symbols`
};

}  // namespace

ElfObject::ElfObject(std::string_view bytes) {
  ObjectReader reader(bytes);
  sections_ = std::move(reader.sections);
  symbols_ = std::move(reader.symbols);
  relocations_ = std::move(reader.relocations);
}

}  // namespace cyxla::direct

#else

namespace cyxla::direct {

ElfObject::ElfObject(std::string_view) {
  throw Refusal(Reason::kPlatform,
                "object files can be read only on x86-64 Linux with the GNU C library");
}

}  // namespace cyxla::direct

#endif

// SPDX-License-Identifier: Apache-2.0
#include "direct/load/elf_object.h"

#include <gtest/gtest.h>

#if defined(CYXLA_TEST_KERNELS)

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "direct/load/code.h"
#include "direct/load/symbols.h"
#include "direct/test_programs.h"

namespace cyxla::direct {
namespace {

using test::kernel_object;
using test::refusal_of;

Elf64_Ehdr header_of(const std::string& object) {
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof(header));
  return header;
}

Elf64_Shdr section_of(const std::string& object, std::size_t index) {
  Elf64_Shdr section;
  std::memcpy(&section, object.data() + header_of(object).e_shoff + index * sizeof(section),
              sizeof(section));
  return section;
}

void set_section(std::string& object, std::size_t index, const Elf64_Shdr& section) {
  std::memcpy(object.data() + header_of(object).e_shoff + index * sizeof(section), &section,
              sizeof(section));
}

// The first section that `wanted` accepts.
template <typename Wanted>
std::size_t find_section(const std::string& object, Wanted wanted) {
  for (std::size_t i = 0; i < header_of(object).e_shnum; ++i) {
    if (wanted(section_of(object, i))) {
      return i;
    }
  }
  throw std::runtime_error("no such section");
}

std::size_t relocations_of(const std::string& object) {
  return find_section(object, [&](const Elf64_Shdr& section) {
    return section.sh_type == SHT_RELA &&
           (section_of(object, section.sh_info).sh_flags & SHF_ALLOC) != 0;
  });
}

std::string with_section(const std::string& object, std::size_t index,
                         const std::function<void(Elf64_Shdr&)>& change) {
  std::string changed = object;
  Elf64_Shdr section = section_of(object, index);
  change(section);
  set_section(changed, index, section);
  return changed;
}

std::string with_relocation(const std::string& object,
                            const std::function<void(Elf64_Rela&)>& change) {
  std::string changed = object;
  char* place = changed.data() + section_of(object, relocations_of(object)).sh_offset;
  Elf64_Rela relocation;
  std::memcpy(&relocation, place, sizeof(relocation));
  change(relocation);
  std::memcpy(place, &relocation, sizeof(relocation));
  return changed;
}

std::string reason(const std::string& object) {
  return refusal_of([&] { ElfObject{object}; });
}

void expect_reason(const std::string& object, const std::string& part) {
  const std::string text = reason(object);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(ElfObject, GivesCodeDataKernelsAndRelocations) {
  const std::string bytes = kernel_object("arithmetic");
  const ElfObject object(bytes);
  const auto table = std::find_if(object.symbols().begin(), object.symbols().end(),
                                  [](const auto& symbol) { return symbol.name == "table"; });
  ASSERT_NE(table, object.symbols().end());
  EXPECT_TRUE(table->is_kernel);
  EXPECT_GT(table->size_bytes, 0U);
  ASSERT_TRUE(table->section.has_value());
  EXPECT_TRUE(object.sections()[*table->section].is_code);
  EXPECT_TRUE(std::any_of(object.sections().begin(), object.sections().end(),
                          [](const auto& section) { return !section.is_code; }));
  EXPECT_FALSE(object.relocations().empty());
}

TEST(ElfObject, GivesExternalSymbolsWithoutSection) {
  const std::string bytes = kernel_object("sine");
  const ElfObject object(bytes);
  EXPECT_TRUE(std::any_of(object.symbols().begin(), object.symbols().end(), [](const auto& symbol) {
    return symbol.name == "sin" && !symbol.section && !symbol.is_kernel;
  }));
}

TEST(ElfObject, RefusesWhatTheFileHeaderSaysItIsNot) {
  const std::string good = kernel_object("sine");
  const auto with_byte = [&](std::size_t offset, char value) {
    std::string changed = good;
    changed[offset] = value;
    return changed;
  };
  expect_reason("", "is truncated");
  expect_reason(with_byte(0, 0), "is not in ELF format");
  expect_reason(with_byte(EI_CLASS, ELFCLASS32), "is not for x86-64");
  expect_reason(with_byte(offsetof(Elf64_Ehdr, e_machine), static_cast<char>(EM_AARCH64)),
                "is not for x86-64 (machine 183)");
  expect_reason(with_byte(offsetof(Elf64_Ehdr, e_type), ET_DYN), "has ELF type 3");
  expect_reason(with_byte(offsetof(Elf64_Ehdr, e_shentsize), 63), "no section table");
}

TEST(ElfObject, RefusesWrittenZeroedAndThreadLocalData) {
  expect_reason(kernel_object("written_data"), "has the section .data with flags 3");
  expect_reason(kernel_object("zeroed_data"), "has the section .bss with flags 3");
  const std::string good = kernel_object("arithmetic");
  const std::size_t code = find_section(good, [](const Elf64_Shdr& section) {
    return (section.sh_flags & SHF_EXECINSTR) != 0 && section.sh_size > 0;
  });
  expect_reason(with_section(good, code, [](auto& section) { section.sh_flags |= SHF_TLS; }),
                "with flags 1030, which is more than read-only code or data");
  expect_reason(with_section(good, code, [](auto& section) { section.sh_type = SHT_NOBITS; }),
                "of type 8");
  expect_reason(with_section(good, code, [](auto& section) { section.sh_addralign = 3; }),
                "with alignment 3");
  expect_reason(with_section(good, code, [](auto& section) { section.sh_addralign = 1U << 20; }),
                "with alignment 1048576");
}

TEST(ElfObject, RefusesOtherRelocationsThanAbsoluteOnes) {
  expect_reason(kernel_object("near_call"), "has a relocation of type 4");
  const std::string good = kernel_object("sine");
  expect_reason(with_relocation(good, [](auto& r) { r.r_info = ELF64_R_INFO(1, R_X86_64_PC64); }),
                "has a relocation of type 24");
}

TEST(ElfObject, RefusesOffsetsAndIndicesOutsideTheirTables) {
  const std::string good = kernel_object("sine");
  const std::uint64_t code_bytes =
      section_of(good, section_of(good, relocations_of(good)).sh_info).sh_size;
  expect_reason(with_relocation(good, [&](auto& r) { r.r_offset = code_bytes - 7; }),
                "has a relocation beyond the end of its section");
  expect_reason(with_relocation(good, [](auto& r) { r.r_offset = UINT64_MAX - 3; }),
                "has a relocation beyond the end of its section");
  expect_reason(with_relocation(good, [](auto& r) { r.r_info = ELF64_R_INFO(9999, R_X86_64_64); }),
                "refers to a symbol outside its table");
  expect_reason(with_section(good, relocations_of(good), [](auto& s) { s.sh_offset = 1U << 30; }),
                "is truncated");
  expect_reason(with_section(good, relocations_of(good), [](auto& s) { s.sh_link = 0; }),
                "has relocations of an unusual form");
  expect_reason(with_section(good, relocations_of(good), [](auto& s) { s.sh_info = 9999; }),
                "has relocations without a section");
  EXPECT_NO_THROW(ElfObject{with_relocation(good, [&](auto& r) { r.r_offset = code_bytes - 8; })});
}

TEST(ElfObject, RefusesSectionsThatOverlap) {
  const std::string good = kernel_object("arithmetic");
  const std::size_t code = find_section(good, [](const Elf64_Shdr& section) {
    return (section.sh_flags & SHF_EXECINSTR) != 0 && section.sh_size > 0;
  });
  expect_reason(with_section(good, code,
                             [&](auto& section) {
                               section.sh_offset = 0;
                               section.sh_size = good.size();
                             }),
                "has sections that overlap");
}

// Whatever the bytes, loading ends with code or with a Refusal.
void load(const std::string& bytes, int& loaded, int& refused) {
  static const ExternalSymbols symbols = ExternalSymbols::of_plugin(CYXLA_TEST_LIBRARY);
  try {
    const Code code({bytes}, symbols);
    ++loaded;
  } catch (const Refusal&) {
    ++refused;
  }
}

TEST(ElfObject, SurvivesEveryFlippedBit) {
  int loaded = 0;
  int refused = 0;
  for (const char* name : {"sine", "arithmetic"}) {
    std::string bytes = kernel_object(name);
    for (char& byte : bytes) {
      for (const int flip : {0x01, 0x10, 0x80, 0xff}) {
        byte = static_cast<char>(byte ^ flip);
        load(bytes, loaded, refused);
        byte = static_cast<char>(byte ^ flip);
      }
    }
  }
  EXPECT_GT(loaded, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(ElfObject, SurvivesEveryLength) {
  int loaded = 0;
  int refused = 0;
  const std::string bytes = kernel_object("arithmetic");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    load(bytes.substr(0, i), loaded, refused);
  }
  EXPECT_EQ(loaded, 0);
  EXPECT_EQ(refused, static_cast<int>(bytes.size()));
}

}  // namespace
}  // namespace cyxla::direct

#endif

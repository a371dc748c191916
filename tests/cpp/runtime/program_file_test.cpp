// SPDX-License-Identifier: Apache-2.0
#include "runtime/program_file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "pjrt/pjrt_header.h"
#include "support/errors.h"

namespace cyxla::runtime {
namespace {

using std::string_literals::operator""s;
using test::message_of;

ProgramFile sample() {
  ProgramFile program;
  program.name = "energy";
  program.platform = "cpu";
  program.artifact = "ML\xefR\0bytes"s;
  program.text = "module {}";
  program.inputs = {{"x", {PJRT_Buffer_Type_F32, {3, 4}}},
                    {"d['\xc3\xa9']", {PJRT_Buffer_Type_PRED, {}}}};
  program.outputs = {{"result", {PJRT_Buffer_Type_C128, {0, 7}}}};
  program.custom_call_targets = {"lapack_spotrf_ffi", ""};
  program.flops = 2.5;
  program.stablehlo_version = "1.17.0";
  program.jax_version = "0.11.2";
  program.cyxla_version = "0.1.0";
  return program;
}

void expect_equal(const ProgramFile& left, const ProgramFile& right) {
  EXPECT_EQ(left.name, right.name);
  EXPECT_EQ(left.platform, right.platform);
  EXPECT_EQ(left.artifact, right.artifact);
  EXPECT_EQ(left.text, right.text);
  EXPECT_EQ(left.custom_call_targets, right.custom_call_targets);
  EXPECT_EQ(left.flops, right.flops);
  EXPECT_EQ(left.stablehlo_version, right.stablehlo_version);
  EXPECT_EQ(left.jax_version, right.jax_version);
  EXPECT_EQ(left.cyxla_version, right.cyxla_version);
  const auto expect_arrays = [](const auto& some, const auto& others) {
    ASSERT_EQ(some.size(), others.size());
    for (std::size_t i = 0; i < some.size(); ++i) {
      EXPECT_EQ(some[i].name, others[i].name);
      EXPECT_EQ(some[i].type.element_type, others[i].type.element_type);
      EXPECT_EQ(some[i].type.dimensions, others[i].type.dimensions);
    }
  };
  expect_arrays(left.inputs, right.inputs);
  expect_arrays(left.outputs, right.outputs);
}

std::string refusal(std::string_view bytes) {
  return message_of(ErrorCode::kArgument, [&] { read_program_file(bytes); });
}

// The functions below follow docs/program-file.md instead of the code under test.

void put(std::string& file, std::size_t offset, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    file[offset + i] = static_cast<char>(value >> (8 * i));
  }
}

std::uint64_t number_at(const std::string& file, std::size_t offset, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::uint64_t{static_cast<std::uint8_t>(file[offset + i])} << (8 * i);
  }
  return value;
}

// Returns a file with the correct size and checksum.
std::string sealed(std::string file) {
  put(file, 16, file.size(), 8);
  Sha256 hash;
  hash.update(std::string_view(file).substr(0, 32));
  hash.update(std::string_view(file).substr(64));
  const Sha256Digest digest = hash.finish();
  file.replace(32, digest.size(), reinterpret_cast<const char*>(digest.data()), digest.size());
  return file;
}

std::string section(const std::string& tag, std::uint32_t flags, const std::string& content) {
  std::string bytes = tag + std::string(12, '\0') + content;
  put(bytes, 4, flags, 4);
  put(bytes, 8, content.size(), 8);
  bytes.resize((bytes.size() + 7) / 8 * 8, '\0');
  return bytes;
}

struct Section {
  std::string tag;
  std::size_t offset;  // of its content
  std::size_t size;
};

std::vector<Section> sections_of(const std::string& file) {
  std::vector<Section> sections;
  for (std::size_t at = 64; at < file.size();) {
    const std::size_t size = number_at(file, at + 8, 8);
    sections.push_back({file.substr(at, 4), at + 16, size});
    at += 16 + (size + 7) / 8 * 8;
  }
  return sections;
}

// Returns the sample's file with one section's content replaced.
std::string with(const std::string& tag, const std::string& content) {
  const std::string file = write_program_file(sample());
  std::string changed = file.substr(0, 64);
  for (const Section& old : sections_of(file)) {
    const std::uint32_t flags = static_cast<std::uint32_t>(number_at(file, old.offset - 12, 4));
    changed +=
        section(old.tag, flags, old.tag == tag ? content : file.substr(old.offset, old.size));
  }
  return sealed(changed);
}

std::string u32(std::uint32_t value) {
  std::string bytes(4, '\0');
  put(bytes, 0, value, 4);
  return bytes;
}

std::string u64(std::uint64_t value) {
  std::string bytes(8, '\0');
  put(bytes, 0, value, 8);
  return bytes;
}

TEST(ProgramFile, WhatIsWrittenIsRead) {
  expect_equal(read_program_file(write_program_file(sample())), sample());
  ProgramFile bare;
  bare.stablehlo_version = "1.0.0";
  expect_equal(read_program_file(write_program_file(bare)), bare);
}

TEST(ProgramFile, TheLayoutIsTheDocumentedOne) {
  const std::string file = write_program_file(sample());
  EXPECT_EQ(file.substr(0, 8),
            "\x89"
            "CYXLAP\n");
  EXPECT_EQ(number_at(file, 8, 4), 1U);
  EXPECT_EQ(number_at(file, 16, 8), file.size());
  EXPECT_EQ(number_at(file, 24, 8), 0U);
  EXPECT_EQ(sealed(file), file);
  const std::vector<Section> sections = sections_of(file);
  EXPECT_EQ(number_at(file, 12, 4), sections.size());
  std::string tags;
  for (const Section& found : sections) {
    tags += found.tag + std::to_string(number_at(file, found.offset - 12, 4)) + " ";
  }
  EXPECT_EQ(tags, "NAME0 PLAT1 VERS1 SIGN1 CUST1 FLOP0 SHLO1 TEXT0 ");
  const std::string array =
      u32(PJRT_Buffer_Type_C128) + u32(2) + u64(0) + u64(7) + u32(6) + "result";
  EXPECT_EQ(file.substr(sections[3].offset, sections[3].size),
            u32(2) + u32(1) + u32(PJRT_Buffer_Type_F32) + u32(2) + u64(3) + u64(4) + u32(1) + "x" +
                u32(PJRT_Buffer_Type_PRED) + u32(0) + u32(7) + "d['\xc3\xa9']" + array);
}

TEST(ProgramFile, CutAtEveryByteItIsRefused) {
  const std::string file = write_program_file(sample());
  for (std::size_t size = 0; size < file.size(); ++size) {
    // In memory of exactly this size, so that a sanitizer sees a read past it.
    const std::vector<char> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_NE(refusal({cut.data(), cut.size()}), "") << size;
  }
  EXPECT_EQ(refusal(""), "it is empty");
  EXPECT_EQ(refusal(file.substr(0, 5)), "it is cut off within its first bytes");
  EXPECT_EQ(refusal(file.substr(0, 100)),
            "it has 100 bytes, but its header says " + std::to_string(file.size()) +
                ": it is cut off, or something follows it; copy it again");
  EXPECT_NE(refusal(file + "x").find("something follows it"), std::string::npos);
}

TEST(ProgramFile, AlteredAtAnyByteItIsRefused) {
  const std::string file = write_program_file(sample());
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const int change : {1, 0x80, 0xff}) {
      std::string altered = file;
      altered[i] = static_cast<char>(altered[i] ^ change);
      ASSERT_NE(refusal(altered), "") << i;
    }
  }
  std::string altered = file;
  altered[file.size() - 20] ^= 1;
  EXPECT_EQ(refusal(altered),
            "it is damaged: its checksum does not match; copy it again, or save the program again");
}

// A checksum does not protect against deliberate changes.
TEST(ProgramFile, AlteredAndSealedAgainItIsRefusedOrRead) {
  const std::string file = write_program_file(sample());
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const int change : {1, 2, 0x80, 0xff}) {
      std::string altered = file;
      altered[i] = static_cast<char>(altered[i] ^ change);
      const std::string made = sealed(altered);
      const std::vector<char> exact(made.begin(), made.end());
      try {
        const ProgramFile read = read_program_file({exact.data(), exact.size()});
        EXPECT_LE(read.artifact.size(), file.size());
        EXPECT_EQ(write_program_file(read).substr(0, 8), file.substr(0, 8));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kArgument) << error.what();
      }
    }
  }
}

TEST(ProgramFile, AForeignFileIsRefused) {
  EXPECT_EQ(refusal("PK\x03\x04 some other file that is longer than a header of a program file"),
            "it is not a cyxla program file; write one with Program.save");
}

TEST(ProgramFile, ANewerFormatIsRefused) {
  std::string file = write_program_file(sample());
  put(file, 8, 2, 4);
  EXPECT_EQ(refusal(sealed(file)),
            "its format is version 2, but this cyxla reads version 1; upgrade cyxla, or save the "
            "program again with this one");
}

TEST(ProgramFile, UnknownSectionsAreSkippedUnlessTheyAreRequired) {
  const std::string file = write_program_file(sample());
  const auto added = [&](const std::string& more) {
    std::string longer = file + more;
    put(longer, 12, number_at(file, 12, 4) + 1, 4);
    return sealed(longer);
  };
  expect_equal(read_program_file(added(section("HINT", 0, "12345"))), sample());
  EXPECT_EQ(refusal(added(section("A\x01"s + "CD", 1, ""))),
            "it needs the section A?CD, which this cyxla does not know; upgrade cyxla, or save the "
            "program again with this one");
  EXPECT_EQ(refusal(added(section("NAME", 0, "twice"))),
            "it has two sections NAME; save the program again");
}

TEST(ProgramFile, EverySectionButOneIsNeeded) {
  const std::string file = write_program_file(sample());
  for (const Section& left_out : sections_of(file)) {
    std::string shorter = file.substr(0, left_out.offset - 16) +
                          file.substr(left_out.offset + (left_out.size + 7) / 8 * 8);
    put(shorter, 12, number_at(file, 12, 4) - 1, 4);
    if (left_out.tag == "FLOP") {
      EXPECT_EQ(read_program_file(sealed(shorter)).flops, std::nullopt);
    } else {
      EXPECT_EQ(refusal(sealed(shorter)),
                "it lacks the section " + left_out.tag + "; save the program again");
    }
  }
}

TEST(ProgramFile, SectionsThatEndEarlyOrLate) {
  std::string file = write_program_file(sample());
  const Section last = sections_of(file).back();
  put(file, last.offset - 8, std::numeric_limits<std::uint64_t>::max(), 8);
  EXPECT_NE(
      refusal(sealed(file)).find("its list of sections is broken: it needs 18446744073709551615"),
      std::string::npos);
  put(file, last.offset - 8, last.size, 8);
  put(file, 12, number_at(file, 12, 4) + 1, 4);
  EXPECT_EQ(refusal(sealed(file)),
            "its list of sections is broken: it needs 4 bytes where 0 are left");
  put(file, 12, number_at(file, 12, 4) - 2, 4);
  EXPECT_NE(refusal(sealed(file)).find("bytes left over"), std::string::npos);
}

TEST(ProgramFile, CountsAndLengthsThatDoNotFit) {
  const std::uint32_t huge = 0xffffffff;
  EXPECT_EQ(refusal(with("CUST", u32(huge) + "abcd")),
            "its section CUST is broken: 4294967295 entries do not fit into 4 bytes");
  EXPECT_EQ(refusal(with("CUST", u32(1) + u32(huge))),
            "its section CUST is broken: it needs 4294967295 bytes where 0 are left");
  EXPECT_EQ(refusal(with("CUST", u32(0) + "x")), "its section CUST is broken: 1 byte left over");
  EXPECT_EQ(refusal(with("VERS", u32(huge))),
            "its section VERS is broken: 4294967295 entries do not fit into 0 bytes");
  EXPECT_EQ(refusal(with("VERS", u32(0))),
            "it does not give its StableHLO version; save the program again");
  EXPECT_EQ(refusal(with("FLOP", "1234")),
            "its section FLOP is broken: it needs 8 bytes where 4 are left");
  EXPECT_EQ(refusal(with("SIGN", u32(huge) + u32(0))),
            "its section SIGN is broken: 4294967295 entries do not fit into 4 bytes");
  EXPECT_EQ(refusal(with("SIGN", u32(0) + u32(1) + u32(PJRT_Buffer_Type_F32) + u32(huge) + u32(0))),
            "its section SIGN is broken: 4294967295 entries do not fit into 4 bytes");
}

TEST(ProgramFile, ArraysThatCannotBe) {
  const auto of = [](std::uint32_t type, const std::vector<std::uint64_t>& dimensions) {
    std::string content =
        u32(0) + u32(1) + u32(type) + u32(static_cast<std::uint32_t>(dimensions.size()));
    for (const std::uint64_t dimension : dimensions) {
      content += u64(dimension);
    }
    return refusal(with("SIGN", content + u32(1) + "y"));
  };
  EXPECT_EQ(of(PJRT_Buffer_Type_F32, {~std::uint64_t{0}}),
            "its array y is invalid: F32[-1] has a negative dimension");
  EXPECT_EQ(of(PJRT_Buffer_Type_F32, {1ULL << 32, 1ULL << 32}),
            "its array y is invalid: F32[4294967296,4294967296] is larger than the address space");
  EXPECT_EQ(of(PJRT_Buffer_Type_C128, {1ULL << 62}),
            "its array y is invalid: C128[4611686018427387904] is larger than the address space");
  EXPECT_NE(of(12345, {}).find("an element type that cyxla cannot pass to native code"),
            std::string::npos);
}

}  // namespace
}  // namespace cyxla::runtime

// SPDX-License-Identifier: Apache-2.0
// Reads damaged program files with a correct length and checksum: each is refused with an Error, or
// is a program that can be written and read again.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/sha256.h"
#include "require.h"
#include "runtime/program_file.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using cyxla::fuzz::require;
using cyxla::runtime::ProgramFile;

constexpr std::size_t kSizeAt = 16;
constexpr std::size_t kDigestAt = 32;
constexpr std::size_t kHeaderSize = 64;

ProgramFile sample() {
  ProgramFile program;
  program.name = "f";
  program.platform = "cpu";
  program.artifact = "ML\xefR";
  program.text = "module {}";
  program.inputs = {{"x", {11, {3, 4}}}, {"y[0]", {12, {}}}};
  program.outputs = {{"0", {11, {0, 5}}}, {"", {1, {7}}}};
  program.custom_call_targets = {"lapack_spotrf_ffi", ""};
  program.flops = 12.5;
  program.stablehlo_version = "1.13.3";
  program.jax_version = "0.10.2";
  program.cyxla_version = "0.1.0";
  return program;
}

// Updates the length and the checksum.
void seal(std::string& file) {
  if (file.size() < kHeaderSize) {
    return;
  }
  for (std::size_t i = 0; i < 8; ++i) {
    file[kSizeAt + i] = static_cast<char>(file.size() >> (8 * i) & 0xff);
  }
  cyxla::Sha256 hash;
  hash.update(std::string_view(file).substr(0, kDigestAt));
  hash.update(std::string_view(file).substr(kHeaderSize));
  const cyxla::Sha256Digest digest = hash.finish();
  std::memcpy(file.data() + kDigestAt, digest.data(), digest.size());
}

void mutate_bytes(std::string& file, std::size_t begin, std::size_t max_size) {
  const std::size_t old_size = file.size() - begin;
  file.resize(std::max(file.size(), max_size));
  file.resize(begin + LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(file.data()) + begin,
                                       old_size, file.size() - begin));
}

// Replaces a 32-bit number.
void change_number(std::string& file, std::minstd_rand& random) {
  const std::uint32_t choices[] = {0, 1, 2, 7, 0xffffffff, 0x80000000, 1U << random() % 32};
  const std::uint32_t number = choices[random() % std::size(choices)];
  const std::size_t position = (kHeaderSize + random() % (file.size() - kHeaderSize - 3)) & ~3UL;
  std::memcpy(file.data() + position, &number, sizeof number);
}

bool is_same(const ProgramFile& a, const ProgramFile& b) {
  const auto same_arrays = [](const auto& left, const auto& right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](const auto& one, const auto& other) {
                        return one.name == other.name &&
                               one.type.element_type == other.type.element_type &&
                               one.type.dimensions == other.type.dimensions;
                      });
  };
  return a.name == b.name && a.platform == b.platform && a.artifact == b.artifact &&
         a.text == b.text && same_arrays(a.inputs, b.inputs) && same_arrays(a.outputs, b.outputs) &&
         a.custom_call_targets == b.custom_call_targets &&
         a.flops.has_value() == b.flops.has_value() &&
         (!a.flops ||
          std::bit_cast<std::uint64_t>(*a.flops) == std::bit_cast<std::uint64_t>(*b.flops)) &&
         a.stablehlo_version == b.stablehlo_version && a.jax_version == b.jax_version &&
         a.cyxla_version == b.cyxla_version;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ProgramFile program;
  try {
    program = cyxla::runtime::read_program_file({reinterpret_cast<const char*>(data), size});
  } catch (const cyxla::Error& error) {
    require(error.code() == cyxla::ErrorCode::kArgument, "the kind of error");
    return 0;
  }
  for (const auto* arrays : {&program.inputs, &program.outputs}) {
    for (const auto& array : *arrays) {
      array.type.size_bytes();
    }
  }
  const std::string written = cyxla::runtime::write_program_file(program);
  require(is_same(cyxla::runtime::read_program_file(written), program), "a program comes back");
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  std::string file(reinterpret_cast<const char*>(data), size);
  if (size <= kHeaderSize + 4 || random() % 64 == 0) {
    file = cyxla::runtime::write_program_file(sample());
  }
  if (random() % 2 == 0) {
    change_number(file, random);
  } else {
    mutate_bytes(file, random() % 16 == 0 ? 0 : kHeaderSize, max_size);
  }
  if (random() % 16 != 0) {
    seal(file);
  }
  file.resize(std::min(file.size(), max_size));
  std::memcpy(data, file.data(), file.size());
  return file.size();
}

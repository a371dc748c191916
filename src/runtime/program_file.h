// SPDX-License-Identifier: Apache-2.0
// The file that keeps a lowered program; docs/program-file.md describes it byte for byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/signature.h"

namespace cyxla::runtime {

// One input or output of a lowered program.
struct NamedArray {
  std::string name;
  ArrayType type;
};

// What a program file holds. All strings but the artifact are UTF-8.
struct ProgramFile {
  std::string name;
  std::string platform;  // JAX's name: "cpu", "cuda", "rocm", "tpu"
  std::string artifact;  // portable StableHLO of version `stablehlo_version`
  std::string text;      // the same module as MLIR text
  std::vector<NamedArray> inputs;
  std::vector<NamedArray> outputs;
  std::vector<std::string> custom_call_targets;
  std::optional<double> flops;
  std::string stablehlo_version;
  std::string jax_version;    // of the JAX that lowered the program
  std::string cyxla_version;  // of the cyxla that wrote the file
};

// The bytes of a program file. Throws Error (kArgument) for a part of 4 GiB or more that has to be
// shorter.
std::string write_program_file(const ProgramFile& program);

// Reads the bytes of a program file. Throws Error (kArgument), which says what is wrong with them,
// for whatever is not exactly such a file; never allocates more than a few times their size.
ProgramFile read_program_file(std::string_view bytes);

}  // namespace cyxla::runtime

// SPDX-License-Identifier: Apache-2.0
// The file format of a lowered program; docs/program-file.md describes every byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/signature.h"

namespace cyxla::runtime {

// An input or output of a lowered program.
struct NamedArray {
  std::string name;
  ArrayType type;
};

// The contents of a program file. All strings except the artifact are UTF-8.
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

// Returns the bytes of a program file. Throws Error (kArgument) when a count or length exceeds 32
// bits.
std::string write_program_file(const ProgramFile& program);

// Reads the bytes of a program file. Throws Error (kArgument) with the reason when they are not
// exactly such a file. Never allocates more than a few times their size.
ProgramFile read_program_file(std::string_view bytes);

}  // namespace cyxla::runtime

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pjrt/compile_options.h"
#include "pjrt/executable.h"
#include "runtime/program.h"
#include "runtime/references.h"
#include "runtime/signature.h"

namespace cyxla::runtime {

// How to execute a program.
struct RouteRequest {
  enum class Route : std::uint8_t {
    kAuto,  // directly if possible
    kPjrt,
    kDirect,  // directly, or fail
  };
  Route route = Route::kPjrt;
  std::string reason;    // why kPjrt, or why this form of the program, in a sentence
  bool may_fork = true;  // whether programs may be tried in a child process
};

// A program to compile, or to load again, with everything that affects the result.
struct CompileRequest {
  std::string code;
  std::string format = "mlir";  // as PJRT_Program::format
  pjrt::OptionOverrides overrides;
  // A serialized CompileOptionsProto of the plugin's own XLA version, or empty.
  std::string base_options;
  Signature signature;
  RouteRequest route;
  bool keeps_serialized = false;  // whether to fill Compiled::serialized
};

// What compiling cost, and what the plugin reports about the result.
struct CompileStatistics {
  double seconds = 0;
  pjrt::MemoryStatistics memory;
  std::optional<double> flops;
  std::optional<std::int64_t> instructions;
};

struct DropProgram {
  void operator()(Program* program) const noexcept { drop(&program->spec()); }
};
// The first reference to a new program.
using ProgramReference = std::unique_ptr<Program, DropProgram>;

struct Compiled {
  ProgramReference program;
  CompileStatistics statistics;
  std::string serialized;  // empty when not requested, or when the plugin cannot serialize
};

}  // namespace cyxla::runtime

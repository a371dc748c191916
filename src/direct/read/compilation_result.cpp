// SPDX-License-Identifier: Apache-2.0
#include "direct/read/compilation_result.h"

#include <cstdint>

#include "direct/read/message.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

// Values of XLA's enums: object files of the kind KERNELS, symbols of the type KERNEL and
// COMPARATOR.
constexpr std::uint64_t kKernelObjects = 2;
constexpr std::uint64_t kKernelSymbol = 1;
constexpr std::uint64_t kComparatorSymbol = 2;

std::string_view read_module(std::string_view bytes) {
  std::string_view module;
  Message message(bytes, "the HLO module with its configuration");
  while (message.next()) {
    switch (message.field()) {
      case 1:
        module = message.bytes();
        break;
      case 2:  // configuration: what the compiler did with it is in the kernels
        message.ignore_bytes();
        break;
      default:
        message.refuse_unknown();
    }
  }
  return module;
}

void read_symbol(std::string_view bytes, std::set<std::string_view>& kernels) {
  std::uint64_t type = 0;
  std::string_view name;
  Message message(bytes, "a symbol");
  while (message.next()) {
    switch (message.field()) {
      case 1:
        type = message.number();
        break;
      case 2:
        name = message.bytes();
        break;
      default:
        message.refuse_unknown();
    }
  }
  if (type == kKernelSymbol) {
    kernels.insert(name);
  } else if (type != kComparatorSymbol) {
    throw Refusal("a compiled function is neither a kernel nor a comparator");
  }
}

std::string read_object(std::string_view bytes) {
  std::string object;
  Message message(bytes, "an object file");
  while (message.next()) {
    switch (message.field()) {
      case 1:
        object = message.bytes();
        break;
      case 2:  // name of the LLVM module
        message.ignore_bytes();
        break;
      default:
        message.refuse_unknown();
    }
  }
  return object;
}

void check_target(std::string_view bytes) {
  std::string_view triple;
  Message message(bytes, "the target machine");
  while (message.next()) {
    switch (message.field()) {
      case 1:
        triple = message.bytes();
        break;
      case 2:  // CPU, this machine's: the plugin compiled for it in this process
      case 3:  // its features
        message.ignore_bytes();
        break;
      default:
        message.refuse_unknown();
    }
  }
  if (!triple.starts_with("x86_64-") || triple.find("-linux") == std::string_view::npos) {
    throw Refusal("the kernels are not for x86-64 Linux");
  }
}

std::string_view read_executable(std::string_view serialized) {
  std::string_view result;
  Message message(serialized, "the executable");
  while (message.next()) {
    switch (message.field()) {
      case 1:
        result = message.bytes();
        break;
      case 2:  // compile options
      case 3:  // name of the client
        message.ignore_bytes();
        break;
      default:
        message.refuse_unknown();
    }
  }
  return result;
}

}  // namespace

CompilationResult read_compilation_result(std::string_view serialized) {
  CompilationResult result;
  std::uint64_t objects_kind = 0;
  bool has_target = false;
  Message message(read_executable(serialized), "the compilation result");
  while (message.next()) {
    switch (message.field()) {
      case 1:
        result.module = read_module(message.bytes());
        break;
      case 2:
        result.buffer_assignment = message.bytes();
        break;
      case 5:
        objects_kind = message.number();
        break;
      case 6:
        result.steps = message.bytes();
        break;
      case 7:
        read_symbol(message.repeated_bytes(), result.kernels);
        break;
      case 8:
        result.objects.push_back(read_object(message.repeated_bytes()));
        break;
      case 9:
        check_target(message.bytes());
        has_target = true;
        break;
      case 10:  // LLVM's data layout, which follows from the target
        message.ignore_bytes();
        break;
      default:
        message.refuse_unknown();
    }
  }
  if (objects_kind != kKernelObjects) {
    throw Refusal("the object files do not hold kernels, but files of kind " +
                  std::to_string(objects_kind));
  }
  if (!has_target) {
    throw Refusal("the executable does not name the machine that its kernels are for");
  }
  return result;
}

}  // namespace cyxla::direct

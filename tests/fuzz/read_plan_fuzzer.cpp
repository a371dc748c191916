// SPDX-License-Identifier: Apache-2.0
// Reads and loads corrupted executables but never calls their kernels: each is refused, or is a
// plan that keeps its promises.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "check_object.h"
#include "check_plan.h"
#include "direct/load/elf_object.h"
#include "direct/load/executable.h"
#include "direct/load/symbols.h"
#include "direct/read/program_facts.h"
#include "direct/read/read_plan.h"
#include "direct/refusal.h"
#include "direct/run/context.h"
#include "input.h"
#include "mutate.h"
#include "require.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

struct Counts {
  unsigned long loaded = 0;
  unsigned long not_loaded = 0;  // read, but the object files were refused
  unsigned long refused = 0;
} counts;

void print_counts() {
  std::fprintf(stderr, "read_plan_fuzzer: %lu executables read: %lu loaded, %lu not, %lu refused\n",
               counts.loaded + counts.not_loaded + counts.refused, counts.loaded, counts.not_loaded,
               counts.refused);
}

// A library with imports, instead of a plugin.
const cyxla::direct::ExternalSymbols& symbols() {
  static const cyxla::direct::ExternalSymbols kSymbols = [] {
    if (dlopen(CYXLA_FUZZ_LIBRARY, RTLD_NOW | RTLD_LOCAL) == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
    return cyxla::direct::ExternalSymbols::of_plugin(CYXLA_FUZZ_LIBRARY);
  }();
  return kSymbols;
}

void load(cyxla::direct::Plan plan) {
  for (const std::string& object : plan.objects) {
    cyxla::fuzz::check_object(cyxla::direct::ElfObject(object));
  }
  const cyxla::direct::Executable executable(std::move(plan), symbols());
  for (std::size_t i = 0; i < executable.plan().kernels.size(); ++i) {
    cyxla::fuzz::require(executable.kernel(i) != nullptr, "address of a kernel");
  }
  const cyxla::direct::Context context(executable);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  symbols();
  return std::atexit(print_counts);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = cyxla::fuzz::read_input({reinterpret_cast<const char*>(data), size});
  if (!input) {
    return 0;
  }
  try {
    cyxla::direct::read_facts(input->serialized);
  } catch (const cyxla::direct::Refusal&) {
  }
  unsigned long* outcome = &counts.refused;
  try {
    cyxla::direct::Plan plan = cyxla::direct::read_plan(input->serialized, input->expected);
    cyxla::fuzz::check_plan(plan, input->expected);
    outcome = &counts.not_loaded;
    load(std::move(plan));
    outcome = &counts.loaded;
  } catch (const cyxla::direct::Refusal&) {
  }
  ++*outcome;
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  cyxla::fuzz::Mutator mutator(seed, [max_size](std::string& bytes) {
    const std::size_t old_size = bytes.size();
    bytes.resize(std::min(old_size + 64, std::max(max_size, old_size)));
    bytes.resize(
        LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), old_size, bytes.size()));
  });
  std::string mutated(reinterpret_cast<const char*>(data), size);
  // Mostly one fault, because the first of several hides the others.
  for (unsigned i = seed % 4 == 0 ? 3 : 1; i > 0; --i) {
    mutated = mutator.mutate(mutated);
  }
  mutated.resize(std::min(mutated.size(), max_size));
  std::copy(mutated.begin(), mutated.end(), data);
  return mutated.size();
}

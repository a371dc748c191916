// SPDX-License-Identifier: Apache-2.0
// Compiled as on a system that the direct route does not support: the plugin must run everything.
#include "direct/load/executable.h"

#include <gtest/gtest.h>

#include <string>

#include "direct/load/elf_object.h"
#include "direct/load/symbols.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

template <typename Function>
std::string refusal_of(Function function) {
  try {
    function();
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return "not refused";
}

TEST(NoDirectTest, ProgramsAreRefusedWhateverTheyHold) {
  const std::string reason =
      "kernels are called directly on x86-64 Linux with the GNU C library only";
  EXPECT_EQ(refusal_of([] { Executable({}, {}); }), reason);
  EXPECT_EQ(refusal_of([] { Executable({.objects = {"an object"}}, {}); }), reason);
}

TEST(NoDirectTest, NoSymbolOfAPluginIsKnown) {
  const ExternalSymbols symbols = ExternalSymbols::of_plugin(CYXLA_FAKE_PLUGIN_PATH);
  EXPECT_EQ(refusal_of([&] { symbols.address("memcpy"); }),
            "a kernel calls memcpy, and which version of it the plugin uses is not known");
}

TEST(NoDirectTest, ObjectFilesAreNotRead) {
  EXPECT_EQ(refusal_of([] { ElfObject(""); }),
            "object files are read only where their kernels can be called");
}

}  // namespace
}  // namespace cyxla::direct

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
      "kernels can be called directly only on x86-64 Linux with the GNU C library";
  EXPECT_EQ(refusal_of([] { Executable({}, {}); }), reason);
  EXPECT_EQ(refusal_of([] { Executable({.objects = {"an object"}}, {}); }), reason);
}

TEST(NoDirectTest, NoSymbolOfAPluginIsKnown) {
  const ExternalSymbols symbols = ExternalSymbols::of_plugin(CYXLA_FAKE_PLUGIN_PATH);
  EXPECT_EQ(refusal_of([&] { symbols.address("memcpy"); }),
            "a kernel calls memcpy, but the plugin's version of it cannot be determined");
}

TEST(NoDirectTest, ObjectFilesAreNotRead) {
  EXPECT_EQ(refusal_of([] { ElfObject(""); }),
            "object files can be read only on x86-64 Linux with the GNU C library");
}

}  // namespace
}  // namespace cyxla::direct

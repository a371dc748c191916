// SPDX-License-Identifier: Apache-2.0
#include "direct/load/symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/shared_library.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

std::string refusal(const ExternalSymbols& symbols, const char* name) {
  try {
    symbols.address(name);
  } catch (const Refusal& reason) {
    return reason.what();
  }
  ADD_FAILURE() << name << " was not refused";
  return {};
}

TEST(ExternalSymbols, AreNoneWithoutALoadedPlugin) {
  const std::string reason =
      "a kernel calls sin, but the plugin's version of it cannot be determined";
  EXPECT_EQ(refusal(ExternalSymbols(), "sin"), reason);
  EXPECT_EQ(refusal(ExternalSymbols::of_plugin("/no/such/library.so"), "sin"), reason);
}

#if defined(CYXLA_TEST_LIBRARY)

TEST(ExternalSymbols, AreThoseOfTheLibrary) {
  const SharedLibrary library = SharedLibrary::open(CYXLA_TEST_LIBRARY);
  const ExternalSymbols symbols = ExternalSymbols::of_plugin(CYXLA_TEST_LIBRARY);
  auto* sine = reinterpret_cast<double (*)(double)>(symbols.address("sin"));
  EXPECT_EQ(sine(0.5), std::sin(0.5));
  EXPECT_NE(symbols.address("memcpy"), nullptr);
}

TEST(ExternalSymbols, HaveTheVersionThatTheLibraryIsBoundTo) {
  const SharedLibrary library = SharedLibrary::open(CYXLA_TEST_LIBRARY);
  const ExternalSymbols symbols = ExternalSymbols::of_plugin(CYXLA_TEST_LIBRARY);
  void* imported = symbols.address("log");
  EXPECT_EQ(imported, dlvsym(RTLD_DEFAULT, "log", "GLIBC_2.2.5"));
  // The version that a look-up by name alone gives is another function.
  EXPECT_NE(imported, dlsym(RTLD_DEFAULT, "log"));
  // The old one makes a NaN whose sign is not set.
  auto* through_library = reinterpret_cast<double (*)(double)>(library.symbol("imported_log"));
  auto* logarithm = reinterpret_cast<double (*)(double)>(imported);
  EXPECT_EQ(std::signbit(logarithm(-1)), std::signbit(through_library(-1)));
}

TEST(ExternalSymbols, RefuseWhatTheLibraryDoesNotImportOrMustNotBeCalled) {
  const SharedLibrary library = SharedLibrary::open(CYXLA_TEST_LIBRARY);
  const ExternalSymbols symbols = ExternalSymbols::of_plugin(CYXLA_TEST_LIBRARY);
  EXPECT_EQ(refusal(symbols, "tan"),
            "a kernel calls tan, but the plugin's version of it cannot be determined");
  const std::string not_allowed =
      ", which is not an allowed function of the C or mathematics library";
  EXPECT_EQ(refusal(symbols, "malloc"), "a kernel calls malloc" + not_allowed);
  EXPECT_EQ(refusal(symbols, "__truncdfbf2"), "a kernel calls __truncdfbf2" + not_allowed);
  EXPECT_EQ(refusal(symbols, ""), "a kernel calls " + not_allowed);
}

TEST(ExternalSymbols, KnowTheFunctionsForFloatToo) {
  const std::string unknown = ", but the plugin's version of it cannot be determined";
  for (const char* name : {"sinf", "powf", "truncf", "sincosf", "erf", "erff"}) {
    EXPECT_EQ(refusal(ExternalSymbols(), name), std::string("a kernel calls ") + name + unknown);
  }
}

#endif

}  // namespace
}  // namespace cyxla::direct

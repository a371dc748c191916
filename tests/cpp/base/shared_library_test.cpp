// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/errors.h"

namespace cyxla {
namespace {

using test::message_of;

std::string open_message(const std::string& path) {
  return message_of(ErrorCode::kPlugin, [&] { return SharedLibrary::open(path); });
}

TEST(SharedLibrary, FindsTheSymbolsOfALibrary) {
  const SharedLibrary library = SharedLibrary::open("libm.so.6");
  auto* cosine = reinterpret_cast<double (*)(double)>(library.symbol("cos"));
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0.0), 1.0);
  EXPECT_EQ(library.path(), "libm.so.6");
}

TEST(SharedLibrary, AnAbsentSymbolIsNull) {
  EXPECT_EQ(SharedLibrary::open("libm.so.6").symbol("GetPjrtApi"), nullptr);
}

TEST(SharedLibrary, SymbolsStayWithTheirLibrary) {
  static_cast<void>(SharedLibrary::open(CYXLA_FAKE_PLUGIN_PATH));
  EXPECT_EQ(SharedLibrary::open("libm.so.6").symbol("fake_plugin_reset"), nullptr);
}

TEST(SharedLibrary, AnEmptyPathIsNotTheProgramItself) {
  EXPECT_EQ(open_message(""), "the plugin path is empty; give the path of a PJRT plugin library");
}

TEST(SharedLibrary, AMissingFileIsNamed) {
  const std::string message = open_message("/nope/plugin.so");
  EXPECT_EQ(message.rfind("cannot load the plugin /nope/plugin.so: ", 0), 0U) << message;
  EXPECT_NE(message.find("No such file or directory"), std::string::npos) << message;
}

TEST(SharedLibrary, ADirectoryIsRefused) {
  const std::string message = open_message("/");
  EXPECT_EQ(message.rfind("cannot load the plugin /: ", 0), 0U) << message;
}

TEST(SharedLibrary, AFileThatIsNoLibraryIsRefused) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("not_a_plugin_" + std::to_string(getpid()) + ".so");
  std::ofstream(path) << "\x7f"
                         "ELF not really";
  const std::string message = open_message(path.string());
  EXPECT_EQ(message.rfind("cannot load the plugin " + path.string() + ": ", 0), 0U) << message;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cyxla

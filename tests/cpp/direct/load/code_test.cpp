// SPDX-License-Identifier: Apache-2.0
#include "direct/load/code.h"

#include <gtest/gtest.h>

#if defined(CYXLA_TEST_KERNELS)

#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/shared_library.h"
#include "direct/test_programs.h"

namespace cyxla::direct {
namespace {

using test::kernel_object;
using test::refusal_of;

double call_unary(KernelFunction* kernel, double x) {
  double result = 0;
  const std::array<KernelArgument, 2> arguments = {{{&x, sizeof(x)}, {&result, sizeof(result)}}};
  const KernelDimensions one = {1, 1, 1};
  const KernelDimensions zero = {0, 0, 0};
  const KernelCallFrame frame = {&one, &zero, arguments.size(), arguments.data()};
  EXPECT_EQ(kernel(&frame), nullptr);
  return result;
}

// Permissions of the mapping that holds an address, as "r-xp".
std::string permissions_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream text(line);
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::string permissions;
    text >> std::hex >> begin;
    text.ignore(1);
    text >> end >> permissions;
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    if (begin <= wanted && wanted < end) {
      return permissions;
    }
  }
  return "none";
}

TEST(Code, RunsKernelsOfSeveralObjects) {
  const SharedLibrary library = SharedLibrary::open(CYXLA_TEST_LIBRARY);
  const Code code({kernel_object("arithmetic"), kernel_object("sine")},
                  ExternalSymbols::of_plugin(CYXLA_TEST_LIBRARY));
  EXPECT_EQ(call_unary(code.kernel("sine"), 0.5), std::sin(0.5));
  EXPECT_GE(code.size_bytes(), 2U * 4096);
}

TEST(Code, RelocatesTablesOfAddresses) {
  const Code code({kernel_object("arithmetic")}, ExternalSymbols());
  alignas(64) std::array<double, 2> result = {};
  const KernelArgument argument = {result.data(), sizeof(result)};
  const KernelCallFrame frame = {nullptr, nullptr, 1, &argument};
  EXPECT_EQ(code.kernel("table")(&frame), nullptr);
  EXPECT_EQ(result[0], 20);
  EXPECT_EQ(result[1], 40);
}

TEST(Code, IsExecutableAndNotWritable) {
  const void* address = nullptr;
  {
    const Code code({kernel_object("arithmetic")}, ExternalSymbols());
    address = reinterpret_cast<const void*>(code.kernel("add"));
    EXPECT_EQ(permissions_of(address), "r-xp");
    const auto* data = static_cast<const std::byte*>(address) -
                       reinterpret_cast<std::uintptr_t>(address) % 4096 + code.size_bytes() - 1;
    EXPECT_EQ(permissions_of(data), "r--p");
  }
  EXPECT_NE(permissions_of(address), "r-xp");
}

TEST(Code, RefusesUnknownKernelsSymbolsAndTwins) {
  const Code code({kernel_object("arithmetic")}, ExternalSymbols());
  EXPECT_EQ(refusal_of([&] { code.kernel("subtract"); }),
            "no object file defines the kernel subtract");
  EXPECT_EQ(
      refusal_of([] { Code({kernel_object("unknown_symbol")}, ExternalSymbols()); }),
      "a kernel calls malloc, which is not an allowed function of the C or mathematics library");
  EXPECT_EQ(refusal_of([] { Code({kernel_object("sine")}, ExternalSymbols()); }),
            "a kernel calls sin, but the plugin's version of it cannot be determined");
  const std::string reason = refusal_of([] {
    Code({kernel_object("arithmetic"), kernel_object("arithmetic")}, ExternalSymbols());
  });
  EXPECT_NE(reason.find("two object files define the kernel "), std::string::npos) << reason;
}

TEST(Code, MayBeEmpty) {
  const Code code({}, ExternalSymbols());
  EXPECT_EQ(code.size_bytes(), 0U);
}

TEST(Code, TellsTheProfilerItsKernelsOnRequest) {
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  const auto read = [&] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::remove(path.c_str());
  { const Code code({kernel_object("arithmetic")}, ExternalSymbols()); }
  EXPECT_EQ(read(), "");
  setenv("CYXLA_PERF_MAP", "1", 1);
  const Code code({kernel_object("arithmetic")}, ExternalSymbols());
  unsetenv("CYXLA_PERF_MAP");
  std::ostringstream start;
  start << std::hex << reinterpret_cast<std::uintptr_t>(code.kernel("add")) << ' ';
  const std::string text = read();
  const std::size_t line = text.find(start.str());
  ASSERT_NE(line, std::string::npos) << text;
  EXPECT_EQ(text.substr(text.find('\n', line) - 4, 4), " add");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace cyxla::direct

#endif

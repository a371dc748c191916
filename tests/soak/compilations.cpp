// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "calls.h"
#include "memory.h"
#include "programs.h"
#include "report.h"
#include "runtime/execute.h"

namespace cyxla::soak {
namespace {

bool call(const Compiled& program, Arrays& arrays, std::int64_t number) {
  arrays.fill(number);
  const cyxla_input input = {arrays.x.data(), CYXLA_F64, kSize};
  void* const outputs[] = {arrays.scaled.data(), &arrays.sum};
  return runtime::execute(program.spec, &input, outputs, 1) == 0 && arrays.is_right(program.factor);
}

int factor_of(std::int64_t number) { return static_cast<int>(2 + number % 100); }

std::int64_t warm_up_of(std::int64_t cycles) { return cycles / 4; }

// Calls `cycle` with the numbers from 0 on. Returns the memory before and after all but the first
// cycles.
template <typename Cycle>
std::pair<Memory, Memory> repeat(std::int64_t cycles, Cycle cycle) {
  const std::int64_t warm_up = warm_up_of(cycles);
  auto next_line = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  Memory before;
  for (std::int64_t i = 0; i < cycles; ++i) {
    if (i == warm_up) {
      before = Memory::now();
    }
    cycle(i);
    if (std::chrono::steady_clock::now() > next_line) {
      std::printf("  %lld of %lld\n", static_cast<long long>(i), static_cast<long long>(cycles));
      std::fflush(stdout);
      next_line += std::chrono::seconds(10);
    }
  }
  return {before, Memory::now()};
}

}  // namespace

PluginLeak measure_plugin(const Options& options) {
  const pjrt::Client& client = runtime::Runtime::get()->client();
  const std::string compile_options = pjrt::serialize_compile_options({});
  std::printf("plugin alone: %lld programs compiled and destroyed\n",
              static_cast<long long>(options.cycles));
  const auto [before, after] = repeat(options.cycles, [&](std::int64_t i) {
    const std::string code = code_of(options.is_fake, factor_of(i));
    static_cast<void>(client.compile(code, format_of(options.is_fake), compile_options));
  });
  constexpr std::int64_t kAny = std::int64_t{1} << 40;
  is_flat("memory", before, after, kAny, kAny);
  const std::int64_t measured = options.cycles - warm_up_of(options.cycles);
  const auto leak = [&](std::int64_t bytes) { return std::max<std::int64_t>(bytes, 0) / measured; };
  return {leak(after.allocated_bytes - before.allocated_bytes),
          leak(after.resident_bytes - before.resident_bytes)};
}

bool soak_cycles(const Options& options, runtime::RouteRequest::Route route,
                 const PluginLeak& leak) {
  const bool is_direct = route == runtime::RouteRequest::Route::kDirect;
  std::printf("cycles, %s route: %lld programs compiled, called and destroyed\n",
              is_direct ? "direct" : "pjrt", static_cast<long long>(options.cycles));
  Arrays arrays;
  std::int64_t wrong = 0;
  const auto [before, after] = repeat(options.cycles, [&](std::int64_t i) {
    const Compiled program = compile(options.is_fake, factor_of(i), route);
    wrong += call(program, arrays, i) ? 0 : 1;
    runtime::release(program.spec);
    if (options.leak_per_compilation) {
      soak::leak();
    }
  });
  std::printf("  %lld wrong\n", static_cast<long long>(wrong));
  const std::int64_t measured = options.cycles - warm_up_of(options.cycles);
  const bool flat = is_flat(
      "memory", before, after, measured * (leak.allocated_bytes_per_compilation + 40) + 4096,
      measured * (leak.resident_bytes_per_compilation + 1024) + 2 * 1024 * 1024);
  return (flat || options.any_memory) && wrong == 0;
}

bool soak_alive(const Options& options) {
  std::printf("alive: %lld executables at once\n", static_cast<long long>(options.alive));
  std::vector<Compiled> programs;
  for (std::int64_t i = 0; i < options.alive; ++i) {
    const auto route = !options.is_fake && i % 2 == 0 ? runtime::RouteRequest::Route::kDirect
                                                      : runtime::RouteRequest::Route::kPjrt;
    programs.push_back(compile(options.is_fake, static_cast<int>(2 + i), route));
  }
  Arrays arrays;
  std::int64_t wrong = 0;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      // Each round in another order, so that neighbours do not help each other.
      const std::size_t index = (i * 389 + static_cast<std::size_t>(round)) % programs.size();
      wrong += call(programs[index], arrays, static_cast<std::int64_t>(i)) ? 0 : 1;
    }
  }
  for (const Compiled& program : programs) {
    runtime::release(program.spec);
  }
  std::printf("  %lld wrong of %lld calls\n", static_cast<long long>(wrong),
              static_cast<long long>(3 * options.alive));
  return wrong == 0;
}

}  // namespace cyxla::soak

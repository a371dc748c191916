// SPDX-License-Identifier: Apache-2.0
// Executes, compiles and destroys for a long time, compares every result, and checks that memory
// does not grow. tools/soak.py runs it with plugins and counts.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <string_view>

#include "calls.h"

namespace cyxla::soak {
namespace {

Options read_options(int argc, char** argv) {
  Options options;
  const std::map<std::string_view, std::int64_t*> numbers = {
      {"--pjrt-calls", &options.pjrt_calls}, {"--direct-calls", &options.direct_calls},
      {"--threads", &options.threads},       {"--compilations", &options.compilations},
      {"--cycles", &options.cycles},         {"--alive", &options.alive}};
  const std::map<std::string_view, bool*> flags = {
      {"--fake", &options.is_fake},
      {"--any-memory", &options.any_memory},
      {"--leak-per-call", &options.leak_per_call},
      {"--leak-per-compilation", &options.leak_per_compilation},
      {"--wrong-result", &options.wrong_result}};
  for (int i = 1; i < argc; ++i) {
    const auto number = numbers.find(argv[i]);
    const auto flag = flags.find(argv[i]);
    if (flag != flags.end()) {
      *flag->second = true;
    } else if (number != numbers.end() && i + 1 < argc) {
      *number->second = std::atoll(argv[++i]);
    } else if (options.plugin.empty() && argv[i][0] != '-') {
      options.plugin = argv[i];
    } else {
      std::fprintf(stderr, "error: unknown argument %s\n", argv[i]);
      std::exit(2);
    }
  }
  return options;
}

bool run(const Options& options) {
  using Route = runtime::RouteRequest::Route;
  runtime::Runtime::load({.path = options.plugin,
                          .options = options.is_fake
                                         ? pjrt::NamedValues{}
                                         : pjrt::NamedValues{{"cpu_device_count", std::int64_t{1}},
                                                             {"asynchronous", false}}});
  bool good = true;
  PluginLeak leak;
  if (options.cycles > 0) {
    // Twice, because what the plugin allocates once and keeps is not a leak.
    measure_plugin(options);
    leak = measure_plugin(options);
    good = soak_cycles(options, Route::kPjrt, leak) && good;
    good = (options.is_fake || soak_cycles(options, Route::kDirect, leak)) && good;
  }
  if (options.pjrt_calls > 0) {
    good = soak_calls(options, Route::kPjrt, options.pjrt_calls, leak) && good;
  }
  if (options.direct_calls > 0) {
    good = soak_calls(options, Route::kDirect, options.direct_calls, leak) && good;
  }
  if (options.alive > 0) {
    good = soak_alive(options) && good;
  }
  runtime::Runtime::shut_down();
  return good;
}

}  // namespace
}  // namespace cyxla::soak

int main(int argc, char** argv) {
  const cyxla::soak::Options options = cyxla::soak::read_options(argc, argv);
  try {
    const bool good = cyxla::soak::run(options);
    std::printf("soak: %s\n", good ? "passed" : "FAILED");
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("soak: FAILED: %s\n", error.what());
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options.h"
#include "runtime/runtime.h"

namespace cyxla::soak {

// What the plugin itself leaks per compilation.
struct PluginLeak {
  std::int64_t allocated_bytes_per_compilation = 0;
  std::int64_t resident_bytes_per_compilation = 0;
};

// Each of these prints what it did. Returns false when a result was wrong, a call failed or memory
// grew.

// Calls from many threads, which switch to other programs as these are compiled and dropped.
bool soak_calls(const Options& options, runtime::RouteRequest::Route route, std::int64_t calls,
                const PluginLeak& leak);
// Compiles, calls and destroys one program after another.
bool soak_cycles(const Options& options, runtime::RouteRequest::Route route,
                 const PluginLeak& leak);
// Keeps many executables alive at once.
bool soak_alive(const Options& options);
// Does the same compilations through PJRT alone.
PluginLeak measure_plugin(const Options& options);

}  // namespace cyxla::soak

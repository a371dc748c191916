// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "pjrt/client.h"
#include "pjrt/compile_options.h"
#include "pjrt/device.h"
#include "pjrt/ffi/gpu_custom_call.h"
#include "pjrt/ffi/registry.h"
#include "pjrt/plugin.h"
#include "runtime/capabilities.h"
#include "runtime/direct_route.h"
#include "runtime/program.h"

namespace cyxla::runtime {

// What compiling cost and what the plugin says of the result.
struct CompileStatistics {
  double seconds = 0;
  pjrt::MemoryStatistics memory;
  std::optional<double> flops;
  std::optional<std::int64_t> instructions;
};

// How a program is to be executed.
struct RouteRequest {
  enum class Route : std::uint8_t {
    kAuto,  // directly where that is possible
    kPjrt,
    kDirect,  // directly, or not at all
  };
  Route route = Route::kPjrt;
  std::string reason;    // why kPjrt, or why this form of a program, in a sentence
  bool may_fork = true;  // whether programs may be tried in a child process
};

// The process's one runtime: a plugin, its client, and the programs compiled with it. Made once and
// never freed; after shut_down() only its memory remains. Every function may be called from any
// thread.
class Runtime {
 public:
  // Loads a plugin and makes its client. Options named in `optional` are left out when the plugin
  // says that it does not know them. Throws Error (kPlugin); a failed load can be tried again.
  static Runtime& load(const std::string& path, pjrt::NamedValues options,
                       const std::set<std::string>& optional);
  // The loaded runtime or null.
  static Runtime* get() noexcept;
  // Waits for calls in flight, then destroys all programs and the client. Nothing happens without a
  // runtime, the second time, or in a forked child.
  static void shut_down() noexcept;
  // Whether this process was forked off after the runtime was loaded: the plugin's threads exist
  // only in the parent.
  static bool forked() noexcept;
  // What to do then, after "cannot ...".
  static constexpr const char* kForkedProcess =
      ": this process was forked after the runtime was loaded, and the plugin's threads exist only "
      "in the parent; start worker processes with multiprocessing.get_context(\"spawn\") or "
      "\"forkserver\", or fork before the first use of cyxla";

  const pjrt::Plugin& plugin() const noexcept { return plugin_; }
  const pjrt::Client& client() const noexcept { return *client_; }
  Capabilities capabilities() const noexcept { return capabilities_; }
  const std::vector<std::string>& dropped_options() const noexcept { return dropped_options_; }

  // Compiles and gives the one reference to the result. Throws Error (kCompile, kShutdown, kFork).
  // `serialized` gets what load_compiled() takes, empty when the plugin cannot serialize.
  [[nodiscard]] Program* compile(std::string_view code, std::string_view format,
                                 const pjrt::OptionOverrides& overrides, Signature signature,
                                 CompileStatistics& statistics, const RouteRequest& request = {},
                                 std::string_view debug_options = {},
                                 std::string* serialized = nullptr);
  // As compile(), from what an earlier one serialized with this very plugin: the signature is the
  // one of the program compiled then. The bytes are machine code that will run, so they must come
  // from where nobody else can write. Throws Error as well when the plugin refuses them.
  [[nodiscard]] Program* load_compiled(const std::string& serialized, Signature signature,
                                       const RouteRequest& request = {});
  // Throws Error (kShutdown, kFork).
  pjrt::DeviceDescription describe_device();
  // Why the plugin's programs are not executed directly; empty when they may be.
  [[nodiscard]] std::string direct_refusal(bool may_fork);
  // What the plugin serializes of a compiled program; empty when it cannot. Throws Error
  // (kShutdown, kFork).
  std::string serialize(const Program& program);
  // As pjrt::FfiRegistry::register_handler. Throws Error (kShutdown, kFork) too.
  pjrt::FfiRegistration register_ffi_handler(const std::string& target, const std::string& platform,
                                             void* handler);
  // As pjrt::register_gpu_custom_call. Throws Error (kShutdown, kFork) too.
  void register_gpu_custom_call(const std::string& target, const pjrt::GpuHandler& handler);

  // Destroys a program without references, now or when its calls in flight have ended.
  void drop(Program& program) noexcept;
  // Whether destroy_dropped() may have something to do after the end of a call of `program`, which
  // may be gone already: only its address is looked at.
  static bool may_wait_for_destruction(const Program* program) noexcept {
    return (waiting_programs.load(std::memory_order_relaxed) & bit_of(program)) != 0;
  }
  // Destroys the dropped programs whose calls have ended, on whichever thread.
  static void destroy_dropped() noexcept;

 private:
  Runtime(const pjrt::Plugin& plugin, pjrt::Client client,
          std::vector<std::string> dropped_options);

  static void check_not_forked(const char* what);
  // Keeps the runtime open, shared with others. Throws Error (kShutdown, kFork) when it is not.
  [[nodiscard]] std::shared_lock<std::shared_mutex> stay_open(const char* what);
  [[nodiscard]] Program* add_program(pjrt::LoadedExecutable executable, Signature signature,
                                     const RouteRequest& request, const std::string& serialized);
  void choose_route(Program& program, const RouteRequest& request, const std::string& serialized);
  // A set of programs as 64 bits; different ones may share a bit.
  static std::uint64_t bit_of(const Program* program) noexcept {
    constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;  // spreads addresses over the upper bits
    return std::uint64_t{1} << (reinterpret_cast<std::uintptr_t>(program) * kMix >> 58);
  }
  void note_waiting_programs() noexcept;
  void destroy_idle_programs() noexcept;
  bool close_idle_programs() noexcept;

  const pjrt::Plugin& plugin_;
  std::optional<pjrt::Client> client_;
  pjrt::FfiRegistry ffi_registry_;
  Capabilities capabilities_;
  DirectRoute direct_route_;
  std::vector<std::string> dropped_options_;

  std::mutex shut_down_mutex_;  // held by whoever shuts down, for as long as that takes
  std::shared_mutex
      lifetime_;  // shared while the client is in use outside of calls, unique to shut down
  std::atomic<bool> shut_down_ = false;  // set before lifetime_ is waited for
  std::mutex programs_mutex_;            // guards the two below
  std::vector<Program*> programs_;       // every program that holds PJRT objects
  std::vector<Program*> dropped_;  // those without references that a call kept from being deleted
  // Those of dropped_. Outlives every program and the runtime, so every call may look at it.
  static inline constinit std::atomic<std::uint64_t> waiting_programs{0};
};

}  // namespace cyxla::runtime

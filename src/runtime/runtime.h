// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "pjrt/client.h"
#include "pjrt/device.h"
#include "pjrt/ffi/gpu_custom_call.h"
#include "pjrt/ffi/registry.h"
#include "pjrt/plugin.h"
#include "runtime/capabilities.h"
#include "runtime/compilation.h"
#include "runtime/direct_route.h"
#include "runtime/program.h"

namespace cyxla::runtime {

// A plugin to load, and its options.
struct LoadRequest {
  std::string path;
  pjrt::NamedValues options;           // for PJRT_Client_Create
  std::optional<std::size_t> threads;  // cap on the plugin's thread pool
};

// The process's only runtime: a plugin, its client, and the programs compiled with it. Never freed;
// after shut_down() only its memory remains. Any thread may call every function.
class Runtime {
 public:
  // Loads a plugin and makes its client. Throws Error (kPlugin). A failed load can be retried.
  static Runtime& load(LoadRequest request);
  // Returns the loaded runtime, or null.
  static Runtime* get() noexcept;
  // Waits for calls in flight, then destroys all programs and the client. Does nothing without a
  // runtime, the second time, or in a forked child.
  static void shut_down() noexcept;
  // True in a child that was forked after the runtime was loaded. The plugin's threads exist only
  // in the parent.
  static bool forked() noexcept;
  // The error message for forked(), after "cannot ...".
  static constexpr const char* kForkedProcess =
      ": this process was forked after the runtime was loaded, and the plugin's threads exist only "
      "in the parent; start worker processes with multiprocessing.get_context(\"spawn\") or "
      "\"forkserver\", or fork before the first use of cyxla";

  const pjrt::Plugin& plugin() const noexcept { return plugin_; }
  const pjrt::Client& client() const noexcept { return *client_; }
  Capabilities capabilities() const noexcept { return capabilities_; }

  // Throws Error (kCompile, kShutdown, kFork).
  [[nodiscard]] Compiled compile(CompileRequest request);
  // Loads a program that compile() serialized with the same build of the plugin. `code` is those
  // bytes, the signature is the compiled program's, and options do not apply. The bytes are machine
  // code that will run, so other users must not be able to write to their source. Throws Error
  // (kCompile, kShutdown, kFork).
  [[nodiscard]] Compiled load_compiled(CompileRequest request);
  // Throws Error (kShutdown, kFork).
  pjrt::DeviceDescription describe_device();
  // Returns why the plugin's programs are not executed directly; empty when they may be.
  [[nodiscard]] std::string direct_refusal(bool may_fork);
  // Returns the plugin's serialization of a program; empty when it cannot serialize. Throws Error
  // (kShutdown, kFork).
  std::string serialize(const Program& program);
  // Like pjrt::FfiRegistry::register_handler. Also throws Error (kShutdown, kFork).
  pjrt::FfiRegistration register_ffi_handler(const std::string& target, const std::string& platform,
                                             void* handler);
  // Like pjrt::register_gpu_custom_call. Also throws Error (kShutdown, kFork).
  void register_gpu_custom_call(const std::string& target, const pjrt::GpuHandler& handler);

  // Destroys a program without references, immediately or when its last call returns.
  void drop(Program& program) noexcept;
  // Whether to call destroy_dropped() after a call of `program`. The program may be destroyed
  // already: only its address is used.
  static bool may_wait_for_destruction(const Program* program) noexcept {
    return (waiting_programs.load(std::memory_order_relaxed) & bit_of(program)) != 0;
  }
  // Destroys the dropped programs whose calls have ended. Any thread.
  static void destroy_dropped() noexcept;

 private:
  Runtime(const pjrt::Plugin& plugin, pjrt::Client client);

  static void check_not_forked(const char* what);
  // Keeps the runtime open while the lock is held. Throws Error (kShutdown, kFork).
  [[nodiscard]] std::shared_lock<std::shared_mutex> stay_open(const char* what);
  [[nodiscard]] ProgramReference add_program(pjrt::LoadedExecutable executable,
                                             CompileRequest& request,
                                             const std::string& serialized);
  void choose_route(Program& program, const RouteRequest& request, const std::string& serialized);
  // A program's bit in a 64-bit set; programs may share a bit.
  static std::uint64_t bit_of(const Program* program) noexcept {
    constexpr std::uint64_t kMix =
        0x9e3779b97f4a7c15;  // moves the address's entropy to the upper bits
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

  std::mutex shut_down_mutex_;  // held during the whole shutdown
  std::shared_mutex
      lifetime_;  // shared while the client is in use outside of calls, unique to shut down
  std::atomic<bool> shut_down_ = false;  // set before waiting for lifetime_
  std::mutex programs_mutex_;            // guards the two below
  std::vector<Program*> programs_;       // every program that holds PJRT objects
  std::vector<Program*> dropped_;        // without references, but with a call in flight
  // The bits of dropped_. Outlives every program and the runtime, so that every call may read it.
  static inline constinit std::atomic<std::uint64_t> waiting_programs{0};
};

}  // namespace cyxla::runtime

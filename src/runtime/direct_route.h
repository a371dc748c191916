// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "direct/load/executable.h"
#include "direct/load/symbols.h"
#include "direct/verify/verify.h"
#include "pjrt/client.h"
#include "pjrt/executable.h"
#include "pjrt/plugin.h"
#include "runtime/capabilities.h"
#include "runtime/signature.h"

namespace cyxla::runtime {

// A program that passed the gate.
struct [[nodiscard]] DirectProgram {
  std::unique_ptr<direct::Executable> executable;
  bool is_short = false;  // whether a call takes less time than giving the GIL back and taking it
};

// The gate of the direct route: which programs of a plugin are executed by calling their kernels.
// The plugin has to be admitted first, by a program that is tried in a child process; then each
// program has to give the bits that the plugin gives. Owned by the runtime; any thread.
class DirectRoute {
 public:
  DirectRoute(const pjrt::Plugin& plugin, const pjrt::Client& client, Capabilities capabilities)
      : plugin_(plugin), client_(client), capabilities_(capabilities) {}

  // Why no program of the plugin is executed directly; empty when the plugin is admitted. The first
  // call finds it out, in a child process if it may fork.
  [[nodiscard]] const std::string& plugin_refusal(bool may_fork);

  // Makes a program ready from what the plugin serialized. Throws direct::Refusal.
  DirectProgram open(const std::string& serialized, const Signature& signature,
                     const pjrt::LoadedExecutable& executable, bool may_fork);

 private:
  // What is run in a child process before it is run here.
  enum class Child { kNever, kForLoops, kAlways };

  void admit_plugin(bool may_fork);
  DirectProgram load(const std::string& serialized, const Signature& signature,
                     const pjrt::LoadedExecutable& executable, Child child);
  static void try_loop(const direct::Plan& plan, direct::Verification& verification,
                       direct::Context& context, Child child);
  // Compares the routes with further inputs until each block that holds more than kernels was
  // reached. Throws direct::Refusal for a difference or a block that was not.
  static void compare_unreached(const direct::Plan& plan, direct::Verification& verification,
                                direct::Context& context, const direct::Reference& reference);
  static std::uint64_t usable_variations(const direct::Plan& plan,
                                         direct::Verification& verification,
                                         direct::Context& context);

  const pjrt::Plugin& plugin_;
  const pjrt::Client& client_;
  Capabilities capabilities_;
  std::once_flag once_;
  std::string plugin_refusal_;
  direct::ExternalSymbols symbols_;
};

}  // namespace cyxla::runtime

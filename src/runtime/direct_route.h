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

// A program that may be executed directly.
struct [[nodiscard]] DirectProgram {
  std::unique_ptr<direct::Executable> executable;
  bool is_short = false;  // whether a call takes less time than releasing and retaking the GIL
};

// Decides which programs of a plugin cyxla executes by calling their kernels. First a canary
// program, tried in a child process, must admit the plugin. Then each program must give the same
// bits as through the plugin. Owned by the runtime; any thread may use it.
class DirectRoute {
 public:
  DirectRoute(const pjrt::Plugin& plugin, const pjrt::Client& client, Capabilities capabilities)
      : plugin_(plugin), client_(client), capabilities_(capabilities) {}

  // Returns why programs of the plugin are not executed directly; empty when the plugin is
  // admitted. The first call tries the plugin, in a child process if it may fork.
  [[nodiscard]] const std::string& plugin_refusal(bool may_fork);

  // Loads what the plugin serialized and compares it with the plugin. Throws direct::Refusal.
  [[nodiscard]] DirectProgram open(const std::string& serialized, const Signature& signature,
                                   const pjrt::LoadedExecutable& executable, bool may_fork);

 private:
  // What to try in a child process before running it in this one.
  enum class Child { kNever, kForLoops, kAlways };

  void admit_plugin(bool may_fork);
  DirectProgram load(const std::string& serialized, const Signature& signature,
                     const pjrt::LoadedExecutable& executable, Child child);
  static void try_loop(const direct::Plan& plan, direct::Verification& verification,
                       direct::Context& context, Child child);
  // Compares the routes on further inputs until every block that holds more than kernels was
  // reached. Throws direct::Refusal for a difference, or for a block that was not reached.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace cyxla {

// Runs a function when the scope ends, by return or by exception. Owned by the scope; used by one
// thread.
template <typename Function>
class [[nodiscard]] ScopeGuard {
 public:
  explicit ScopeGuard(Function function) : function_(std::move(function)) {}
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
  ~ScopeGuard() { function_(); }

 private:
  Function function_;
};

}  // namespace cyxla

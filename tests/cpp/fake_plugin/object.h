// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "ledger.h"
#include "pool.h"

namespace fake_plugin {

// The base of every object that the plugin hands out: counted while alive, pooled afterwards, and
// recognizable when dead. `Derived` is the PJRT type; its members keep the values of their last
// use.
template <typename Derived>
struct Object {
  static Derived* make(fake_plugin_kind kind) {
    Derived* object = Pool<Derived>::take();
    object->kind = kind;
    object->state.store(kAlive, std::memory_order_relaxed);
    count_live(kind, 1);
    return object;
  }

  // Returns whether a handle passed by the caller is alive; records a violation when it is not.
  static bool check(const Derived* object, const char* where) noexcept {
    if (object == nullptr) {
      violation(where, "null handle");
      return false;
    }
    if (object->state.load(std::memory_order_relaxed) != kAlive) {
      violation(where, "handle that was destroyed or never made");
      return false;
    }
    return true;
  }

  // The caller gave the object back, and the plugin does not need it any more.
  void retire() noexcept {
    forget();
    Pool<Derived>::give(static_cast<Derived*>(this));
  }

  // The caller gave the object back; the plugin still needs it and calls Pool::give later.
  void forget() noexcept {
    state.store(kDead, std::memory_order_relaxed);
    count_live(kind, -1);
  }

  Derived* next_free = nullptr;

 private:
  static constexpr std::uint32_t kAlive = 0x600d600d;
  static constexpr std::uint32_t kDead = 0xdeaddead;

  std::atomic<std::uint32_t> state = kDead;
  fake_plugin_kind kind = FAKE_PLUGIN_NUM_KINDS;
};

}  // namespace fake_plugin

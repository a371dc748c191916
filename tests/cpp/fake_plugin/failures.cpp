// SPDX-License-Identifier: Apache-2.0
#include "failures.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

namespace fake_plugin {
namespace {

struct Plan {
  FailureOf what;
  std::optional<Function> function;
  std::uint64_t remaining;  // occurrences up to and including the failing one
  bool always;
  Failure failure;
};

struct Plans {
  std::atomic<bool> any = false;  // avoids locking while nothing is planned
  std::atomic<std::uint64_t> failures = 0;
  std::mutex mutex;
  std::vector<Plan> plans;
  std::deque<std::string> texts;  // never shrinks
};

Plans& plans() {
  static Plans& result = *new Plans;
  return result;
}

}  // namespace

const char* keep_text(const std::string& text) {
  const std::lock_guard lock(plans().mutex);
  return plans().texts.emplace_back(text).c_str();
}

void plan_failure(FailureOf what, std::optional<Function> function, std::uint64_t nth,
                  Failure failure) {
  failure.message = keep_text(failure.message == nullptr ? "" : failure.message);
  Plans& all = plans();
  const std::lock_guard lock(all.mutex);
  all.plans.push_back({what, function, nth, nth == 0, failure});
  all.any = true;
}

std::optional<Failure> next_failure(FailureOf what, Function function) noexcept {
  Plans& all = plans();
  if (!all.any.load(std::memory_order_relaxed)) {
    return std::nullopt;
  }
  const std::lock_guard lock(all.mutex);
  std::optional<Failure> result;
  for (Plan& plan : all.plans) {
    if (plan.what != what || (plan.function && *plan.function != function)) {
      continue;
    }
    if (plan.always || (plan.remaining > 0 && --plan.remaining == 0)) {
      result = plan.failure;
    }
  }
  if (result) {
    ++all.failures;
  }
  return result;
}

std::uint64_t failures() noexcept { return plans().failures; }

void reset_failures() {
  Plans& all = plans();
  const std::lock_guard lock(all.mutex);
  all.plans.clear();
  all.failures = 0;
  all.any = false;
}

}  // namespace fake_plugin

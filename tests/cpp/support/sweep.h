// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "support/runtime_test.h"
#include "support/sample_call.h"

namespace cyxla::test {

// A kind of plugin: the settings that differ from the fake plugin's defaults.
struct PluginKind {
  const char* name;
  int views = 0;
  int not_on_cpu = 0;
  int asynchronous = 0;
  int null_events = 0;
  int delay_us = 0;
  bool troubled = false;  // error texts, error codes and Destroy functions fail too
};

inline constexpr PluginKind kPluginKinds[] = {
    {.name = "aliasing"},
    {.name = "without_views", .views = 2},
    {.name = "on_a_device", .not_on_cpu = 1},
    {.name = "asynchronous", .asynchronous = 1},
    {.name = "without_events", .asynchronous = 1, .null_events = 1},
    {.name = "troubled", .troubled = true},
    {.name = "troubled_device", .not_on_cpu = 1, .asynchronous = 1, .troubled = true},
    {.name = "late", .not_on_cpu = 1, .asynchronous = 1, .delay_us = 100}};
// The first kinds of the array.
inline constexpr int kSynchronousKinds = 3;
inline constexpr int kUntroubledKinds = 5;
inline constexpr int kQuickKinds = 7;

inline std::string kind_name(const ::testing::TestParamInfo<PluginKind>& info) {
  return info.param.name;
}

inline void set_kind(FakePlugin& fake, const PluginKind& kind) {
  fake.set(FAKE_PLUGIN_VIEWS, kind.views);
  fake.set(FAKE_PLUGIN_NOT_ON_CPU, kind.not_on_cpu);
  fake.set(FAKE_PLUGIN_ASYNCHRONOUS, kind.asynchronous);
  fake.set(FAKE_PLUGIN_NULL_EXECUTE_EVENTS, kind.null_events);
  fake.set(FAKE_PLUGIN_NULL_COPY_EVENTS, kind.null_events);
  fake.set(FAKE_PLUGIN_DELAY_US, kind.delay_us);
}

// One fault: the nth call of a function, or the nth event that it hands out.
struct Fault {
  enum class Kind { kCall, kEvent, kHollow, kHollowWithCount };
  static constexpr Kind kKinds[] = {Kind::kCall, Kind::kEvent, Kind::kHollow,
                                    Kind::kHollowWithCount};

  std::string function;
  Kind kind = Kind::kCall;
  std::uint64_t nth = 1;

  std::string text() const {
    constexpr const char* kNames[] = {"call", "event", "hollow call", "hollow call with a count"};
    return function + " " + kNames[static_cast<int>(kind)] + " " + std::to_string(nth);
  }

  // Troubled plugins only get failing calls.
  bool applies(const PluginKind& plugin) const {
    // A copy to the host without an event counts as complete, so a hollow one cannot be noticed.
    const bool is_hollow = kind == Kind::kHollow || kind == Kind::kHollowWithCount;
    return !(is_hollow && function == "PJRT_Buffer_ToHostBuffer") &&
           !(plugin.troubled && (kind != Kind::kCall || function == "PJRT_Error_GetCode"));
  }

  void plan(FakePlugin& fake, const PluginKind& plugin) const {
    if (plugin.troubled) {
      fake.set(FAKE_PLUGIN_MUTE, 1);
      for (const std::string& other : fake.functions()) {
        if (other.ends_with("_Destroy") || other == "PJRT_Error_GetCode") {
          fake.fail(other.c_str(), 0, PJRT_Error_Code_INTERNAL, "injected too");
        }
      }
    }
    switch (kind) {
      case Kind::kCall:
        return fake.fail(function.c_str(), nth, PJRT_Error_Code_INTERNAL, "injected");
      case Kind::kEvent:
        return fake.fail_event(function.c_str(), nth, PJRT_Error_Code_INTERNAL, "injected");
      case Kind::kHollow:
      case Kind::kHollowWithCount:
        return fake.hollow(function.c_str(), nth, kind == Kind::kHollowWithCount);
    }
  }

  // Returns whether the fault has happened since reset() and plan().
  bool happened(const FakePlugin& fake, const PluginKind& plugin) const {
    return plugin.troubled ? fake.calls(function.c_str()) >= nth : fake.failures() != 0;
  }

  // Returns what is wrong with the fault's message, or an empty string. It must name the function
  // and quote the plugin.
  std::string complaint(const std::string& message, const PluginKind& plugin) const {
    const auto has = [&](const char* text) { return message.find(text) != std::string::npos; };
    switch (kind) {
      case Kind::kCall:
        return has(function.c_str()) &&
                       has(plugin.troubled ? "the plugin gave no message" : "injected")
                   ? ""
                   : "unclear: " + message;
      case Kind::kEvent:
        return has("PJRT_Event_Await: INTERNAL: injected") ? "" : "unclear: " + message;
      case Kind::kHollow:
      case Kind::kHollowWithCount:
        return has((function + ": ").c_str()) || has("its signature declares") ||
                       has("the plugin reports ")
                   ? ""
                   : "unclear: " + message;
    }
    return "no kind";
  }
};

// The number of faults that were tried, and their results.
struct Tally {
  int positions = 0;
  int reported = 0;
  int events = 0;  // of the positions
  int hollow = 0;  // of the positions

  void count(const Fault& fault, bool was_reported) {
    ++positions;
    reported += was_reported ? 1 : 0;
    events += fault.kind == Fault::Kind::kEvent ? 1 : 0;
    hollow += fault.kind >= Fault::Kind::kHollow ? 1 : 0;
  }

  // Prints a line for each operation, to be added up over a whole run.
  void print(const char* operation) const {
    std::printf("faults: %s: %d positions (%d events, %d hollow), %d reported, %d tolerated\n",
                operation, positions, events, hollow, reported, positions - reported);
    ::testing::Test::RecordProperty(std::string(operation) + "_positions", positions);
    ::testing::Test::RecordProperty(std::string(operation) + "_reported", reported);
  }
};

// Any call of the plugin may fail at any time: the caller gets an error or does not notice, nothing
// leaks, and the next attempt works.
class SweepTest : public RuntimeTest, public ::testing::WithParamInterface<PluginKind> {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    behave();
  }

  void behave() {
    fake.reset();
    set_kind(fake, GetParam());
  }

  struct Attempt {
    std::function<void()> before = [] {};
    std::function<std::string()> act;  // returns "" or the failure's message
    // Returns "" if the result of act() works without a fault. Called after each success.
    std::function<std::string()> check = [] { return std::string(); };
    std::function<void()> after = [] {};
  };

  // Acts with one fault at a time, in the first, second, ... call of each function until none is
  // left, and each time again without a fault.
  Tally sweep(const char* operation, const Attempt& attempt) {
    Tally tally;
    for (const std::string& function : fake.functions()) {
      for (const Fault::Kind kind : Fault::kKinds) {
        Fault fault{function, kind, 1};
        while (fault.applies(GetParam()) && try_fault(fault, attempt, tally) && !HasFailure()) {
          ++fault.nth;
        }
      }
    }
    tally.print(operation);
    return tally;
  }

 private:
  // Returns whether the fault happened.
  bool try_fault(const Fault& fault, const Attempt& attempt, Tally& tally) {
    const std::int64_t live = fake.live();
    attempt.before();
    behave();  // also clears the call counts
    fault.plan(fake, GetParam());
    const std::string message = attempt.act();
    const bool happened = fault.happened(fake, GetParam());
    if (happened) {
      tally.count(fault, !message.empty());
    }
    if (!message.empty()) {
      EXPECT_TRUE(happened) << fault.text() << ": " << message;
      EXPECT_EQ(fault.complaint(message, GetParam()), "") << fault.text();
    }
    EXPECT_EQ(fake.violations(), 0U)
        << fault.text() << ": " << fake.recorded(FAKE_PLUGIN_VIOLATION);
    behave();
    if (message.empty()) {
      EXPECT_EQ(attempt.check(), "") << "what was left after " << fault.text();
    }
    EXPECT_EQ(attempt.act(), "") << "the attempt after " << fault.text();
    EXPECT_EQ(attempt.check(), "") << "the attempt after " << fault.text();
    attempt.after();
    EXPECT_EQ(fake.live(), live) << fault.text() << ": " << fake.live_by_kind();
    return happened;
  }
};

}  // namespace cyxla::test

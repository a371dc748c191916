// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "fake_plugin/control.h"

namespace cyxla::test {

// The controls of the fake plugin, which stays loaded for the life of the process. Any thread.
class FakePlugin {
 public:
  static FakePlugin& get() {
    static FakePlugin plugin;
    return plugin;
  }
  static const char* path() { return CYXLA_FAKE_PLUGIN_PATH; }

  void reset() { reset_(); }
  void set(fake_plugin_setting setting, std::int64_t value) { set_(setting, value); }
  void remove_function(const char* function) {
    EXPECT_EQ(remove_function_(function), 1) << function;
  }
  void fail(const char* function, std::uint64_t nth, std::int32_t code, const char* message) {
    EXPECT_EQ(fail_(function, nth, code, message), 1) << function;
  }
  void fail_event(const char* function, std::uint64_t nth, std::int32_t code, const char* message) {
    EXPECT_EQ(fail_event_(function, nth, code, message), 1) << function;
  }
  void hollow(const char* function, std::uint64_t nth, bool with_count) {
    EXPECT_EQ(hollow_(function, nth, with_count ? 1 : 0), 1) << function;
  }
  // Throws an int when the message is empty.
  void throw_from(const char* function, std::uint64_t nth, const char* message) {
    EXPECT_EQ(throw_(function, nth, message), 1);
  }
  void on_execute(void (*callback)(void*), void* user_arg) { on_execute_(callback, user_arg); }

  std::int32_t call_target(const char* target, const char* platform, void* context) const {
    return call_target_(target, platform, context);
  }
  // Returns a function that tests whether the calling thread runs the plugin's code.
  int (*inside() const)() { return inside_; }

  std::uint64_t failures() const { return failures_(); }
  std::int64_t live() const { return live_(-1); }
  std::int64_t live(fake_plugin_kind kind) const { return live_(kind); }
  std::uint64_t calls(const char* function) const { return calls_(function); }
  std::uint64_t all_calls() const { return calls_(nullptr); }
  std::int64_t running() const { return running_(); }
  std::uint64_t violations() const { return violations_(); }
  std::string recorded(fake_plugin_record record) const {
    std::string text(recorded_(record, nullptr, 0), '\0');
    recorded_(record, text.data(), text.size());
    return text;
  }
  // Returns the functions that can be made to fail.
  std::vector<std::string> functions() const {
    std::vector<std::string> names;
    while (const char* name = function_(names.size())) {
      names.emplace_back(name);
    }
    return names;
  }
  std::string live_by_kind() const {
    constexpr const char* kNames[] = {"clients",
                                      "buffers",
                                      "views",
                                      "executables",
                                      "loaded executables",
                                      "serialized executables",
                                      "events",
                                      "errors"};
    static_assert(sizeof kNames / sizeof *kNames == FAKE_PLUGIN_NUM_KINDS);
    std::string text;
    for (std::int32_t kind = 0; kind < FAKE_PLUGIN_NUM_KINDS; ++kind) {
      text += std::to_string(live_(kind)) + " " + kNames[kind] + " ";
    }
    return text;
  }

 private:
  FakePlugin() {
    void* library = dlopen(path(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      throw std::runtime_error(dlerror());
    }
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (function == nullptr) {
        throw std::runtime_error(std::string(path()) + " lacks " + name);
      }
    };
    find(reset_, "fake_plugin_reset");
    find(set_, "fake_plugin_set");
    find(remove_function_, "fake_plugin_remove_function");
    find(fail_, "fake_plugin_fail");
    find(fail_event_, "fake_plugin_fail_event");
    find(hollow_, "fake_plugin_hollow");
    find(throw_, "fake_plugin_throw");
    find(inside_, "fake_plugin_inside");
    find(on_execute_, "fake_plugin_on_execute");
    find(call_target_, "fake_plugin_call_target");
    find(failures_, "fake_plugin_failures");
    find(live_, "fake_plugin_live");
    find(calls_, "fake_plugin_calls");
    find(running_, "fake_plugin_running");
    find(violations_, "fake_plugin_violations");
    find(recorded_, "fake_plugin_recorded");
    find(function_, "fake_plugin_function");
  }

  decltype(&fake_plugin_reset) reset_;
  decltype(&fake_plugin_set) set_;
  decltype(&fake_plugin_remove_function) remove_function_;
  decltype(&fake_plugin_fail) fail_;
  decltype(&fake_plugin_fail_event) fail_event_;
  decltype(&fake_plugin_hollow) hollow_;
  decltype(&fake_plugin_throw) throw_;
  decltype(&fake_plugin_inside) inside_;
  decltype(&fake_plugin_on_execute) on_execute_;
  decltype(&fake_plugin_call_target) call_target_;
  decltype(&fake_plugin_failures) failures_;
  decltype(&fake_plugin_live) live_;
  decltype(&fake_plugin_calls) calls_;
  decltype(&fake_plugin_running) running_;
  decltype(&fake_plugin_violations) violations_;
  decltype(&fake_plugin_recorded) recorded_;
  decltype(&fake_plugin_function) function_;
};

// Every test starts with a reset plugin, must destroy every object, and must not misuse the API.
class FakePluginTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake.reset();
    live_before_ = fake.live();  // an earlier test's leak must not fail this one
  }
  void TearDown() override {
    EXPECT_EQ(fake.live(), live_before_) << fake.live_by_kind();
    EXPECT_EQ(fake.running(), 0);
    EXPECT_EQ(fake.violations(), 0U) << fake.recorded(FAKE_PLUGIN_VIOLATION);
  }

  FakePlugin& fake = FakePlugin::get();

 private:
  std::int64_t live_before_ = 0;
};

}  // namespace cyxla::test

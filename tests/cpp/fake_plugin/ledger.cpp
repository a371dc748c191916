// SPDX-License-Identifier: Apache-2.0
#include "ledger.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

namespace fake_plugin {
namespace {

// The counts are relaxed, so that the plugin does not order threads that its caller left unordered:
// ThreadSanitizer must see the caller's races.
struct Ledger {
  std::array<std::atomic<std::uint64_t>, kNumFunctions> calls = {};
  std::array<std::atomic<std::int64_t>, FAKE_PLUGIN_NUM_KINDS> live = {};
  std::atomic<std::uint64_t> violations = 0;
  std::mutex mutex;  // guards the records
  std::array<std::string, FAKE_PLUGIN_NUM_RECORDS> records;
};

Ledger& ledger() {
  static Ledger& result = *new Ledger;
  return result;
}

}  // namespace

void count_call(Function function) noexcept {
  ledger().calls[static_cast<std::size_t>(function)].fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t calls(Function function) noexcept {
  return ledger().calls[static_cast<std::size_t>(function)].load(std::memory_order_relaxed);
}

std::uint64_t all_calls() noexcept {
  std::uint64_t total = 0;
  for (const auto& count : ledger().calls) {
    total += count.load(std::memory_order_relaxed);
  }
  return total;
}

void count_live(fake_plugin_kind kind, std::int64_t change) noexcept {
  ledger().live[kind].fetch_add(change, std::memory_order_relaxed);
}

std::int64_t live(fake_plugin_kind kind) noexcept { return ledger().live[kind]; }

void violation(const char* where, const char* what) noexcept {
  if (ledger().violations++ == 0) {
    char text[256];
    std::snprintf(text, sizeof text, "%s: %s", where, what);
    record_text(FAKE_PLUGIN_VIOLATION, text);
  }
}

std::uint64_t violations() noexcept { return ledger().violations; }

void record_text(fake_plugin_record record, std::string_view text) {
  const std::lock_guard lock(ledger().mutex);
  ledger().records[record].assign(text);
}

void append_record(fake_plugin_record record, std::string_view text) {
  const std::lock_guard lock(ledger().mutex);
  ledger().records[record].append(text);
}

void record_numbers(fake_plugin_record record, const std::int64_t* numbers, std::size_t count) {
  const std::lock_guard lock(ledger().mutex);
  std::string& text = ledger().records[record];
  text.clear();
  for (std::size_t i = 0; i < count; ++i) {
    char number[32];
    std::snprintf(number, sizeof number, "%s%lld", i == 0 ? "" : " ",
                  static_cast<long long>(numbers[i]));
    text += number;
  }
}

std::size_t copy_record(fake_plugin_record record, char* buffer, std::size_t size) noexcept {
  const std::lock_guard lock(ledger().mutex);
  const std::string& text = ledger().records[record];
  if (const std::size_t length = std::min(size, text.size()); length != 0) {
    std::memcpy(buffer, text.data(), length);
  }
  return text.size();
}

void reset_ledger() {
  for (auto& count : ledger().calls) {
    count = 0;
  }
  ledger().violations = 0;
  const std::lock_guard lock(ledger().mutex);
  for (std::string& text : ledger().records) {
    text.clear();
  }
}

}  // namespace fake_plugin

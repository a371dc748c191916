// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "control.h"
#include "functions.h"

namespace fake_plugin {

// The plugin's counts and records. Any thread; none of these functions allocates, except
// record_text in its first calls.

void count_call(Function function) noexcept;
std::uint64_t calls(Function function) noexcept;
std::uint64_t all_calls() noexcept;

void count_live(fake_plugin_kind kind, std::int64_t change) noexcept;
std::int64_t live(fake_plugin_kind kind) noexcept;

// Records the caller's misuse of the API.
void violation(const char* where, const char* what) noexcept;
std::uint64_t violations() noexcept;

void record_text(fake_plugin_record record, std::string_view text);
void append_record(fake_plugin_record record, std::string_view text);
// Records numbers as text, "3 2 1".
void record_numbers(fake_plugin_record record, const std::int64_t* numbers, std::size_t count);
std::size_t copy_record(fake_plugin_record record, char* buffer, std::size_t size) noexcept;

// Clears everything except the live objects.
void reset_ledger();

}  // namespace fake_plugin

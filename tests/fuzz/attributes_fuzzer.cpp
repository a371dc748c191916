// SPDX-License-Identifier: Apache-2.0
// Loads plugins with a hostile table and hostile attributes: each is refused with an Error, or its
// attributes are exactly its readable entries.
#include <dlfcn.h>
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "pjrt/plugin.h"
#include "require.h"
#include "stub_table.h"

namespace {

using cyxla::fuzz::require;
using cyxla::pjrt::NamedValue;
using cyxla::pjrt::NamedValues;

constexpr std::size_t kMaxEntries = 12;

// What PJRT_Plugin_Attributes returns, and what cyxla should read from it.
struct Attributes {
  std::vector<PJRT_NamedValue> entries;
  std::vector<std::unique_ptr<char[]>> memory;  // of exactly the stated sizes
  NamedValues expected;
  bool is_null = false;
};

struct Answers {
  Attributes attributes;
  std::string message;
  bool fails = false;
  bool failed = false;  // an earlier plugin at the same table address is not initialized again
} answers;

// A pointer and a size: usually of as many bytes as stated, sometimes null or with an impossible
// size.
struct Bytes {
  const char* data = nullptr;
  std::size_t size = 0;
  bool is_there = true;
};

Bytes take_bytes(FuzzedDataProvider& input, Attributes& out, std::size_t element_bytes) {
  const auto kind = input.ConsumeIntegralInRange<int>(0, 9);
  const auto size = input.ConsumeIntegralInRange<std::size_t>(0, 40);
  if (kind == 0) {
    return {nullptr, size, size == 0};
  }
  out.memory.push_back(std::make_unique<char[]>(size * element_bytes));
  char* data = out.memory.back().get();
  input.ConsumeData(data, size * element_bytes);
  if (kind == 1) {
    const auto shift = input.ConsumeIntegralInRange<int>(0, 38);
    return {data, std::numeric_limits<std::size_t>::max() >> shift, false};
  }
  return {data, size, true};
}

void take_entry(FuzzedDataProvider& input, Attributes& out) {
  PJRT_NamedValue entry = {};
  entry.struct_size =
      input.ConsumeBool() ? PJRT_NamedValue_STRUCT_SIZE : input.ConsumeIntegral<std::size_t>();
  const Bytes name = take_bytes(input, out, 1);
  entry.name = name.data;
  entry.name_size = name.size;
  const auto type = input.ConsumeIntegralInRange<int>(-1, 6);
  static_assert(sizeof entry.type == sizeof type);
  std::memcpy(&entry.type, &type, sizeof type);
  std::optional<NamedValue> expected;
  if (type == PJRT_NamedValue_kString || type == PJRT_NamedValue_kInt64List) {
    const Bytes value = take_bytes(input, out, type == PJRT_NamedValue_kString ? 1 : 8);
    entry.value_size = value.size;
    if (type == PJRT_NamedValue_kString) {
      entry.string_value = value.data;
      expected = std::string(value.is_there ? std::string(value.data, value.size) : "");
    } else {
      entry.int64_array_value = reinterpret_cast<const std::int64_t*>(value.data);
      std::vector<std::int64_t> list(value.is_there ? value.size : 0);
      if (!list.empty()) {
        std::memcpy(list.data(), value.data, value.size * 8);
      }
      expected = std::move(list);
    }
    if (!value.is_there) {
      expected.reset();
    }
  } else {
    const auto bits = input.ConsumeIntegral<std::uint64_t>();
    std::memcpy(&entry.int64_value, &bits, sizeof bits);
    entry.value_size = input.ConsumeIntegralInRange<std::size_t>(0, 2);
    if (type == PJRT_NamedValue_kInt64) {
      expected = static_cast<std::int64_t>(bits);
    } else if (type == PJRT_NamedValue_kFloat) {
      expected = entry.float_value == entry.float_value ? entry.float_value : 0.0F;
      entry.float_value = std::get<float>(*expected);  // not NaN, which does not equal itself
    } else if (type == PJRT_NamedValue_kBool) {
      expected = (bits & 0xff) != 0;
    }
  }
  out.entries.push_back(entry);
  if (expected && name.is_there) {
    out.expected.insert_or_assign(std::string(name.data, name.size), *expected);
  }
}

Attributes take_attributes(FuzzedDataProvider& input) {
  Attributes result;
  for (auto left = input.ConsumeIntegralInRange<std::size_t>(0, kMaxEntries); left > 0; --left) {
    take_entry(input, result);
  }
  result.is_null = input.ConsumeIntegralInRange<int>(0, 15) == 1;
  if (result.is_null) {
    result.expected.clear();
  }
  return result;
}

PJRT_Error* initialize(PJRT_Plugin_Initialize_Args* args) {
  require(args->struct_size == PJRT_Plugin_Initialize_Args_STRUCT_SIZE, "size of arguments");
  answers.failed = answers.fails;
  return answers.fails ? cyxla::fuzz::make_error(answers.message, PJRT_Error_Code_INTERNAL)
                       : nullptr;
}

PJRT_Error* attributes(PJRT_Plugin_Attributes_Args* args) {
  require(args->struct_size == PJRT_Plugin_Attributes_Args_STRUCT_SIZE, "size of arguments");
  args->num_attributes = answers.attributes.entries.size();
  args->attributes = answers.attributes.is_null ? nullptr : answers.attributes.entries.data();
  return nullptr;
}

// The table in memory of its stated size, so that sanitizers see reads beyond it.
std::vector<char> take_table(FuzzedDataProvider& input) {
  PJRT_Api table = cyxla::fuzz::make_stub_table();
  table.PJRT_Plugin_Initialize = initialize;
  table.PJRT_Plugin_Attributes = attributes;
  std::vector<char> bytes(reinterpret_cast<const char*>(&table),
                          reinterpret_cast<const char*>(&table + 1));
  if (input.ConsumeIntegralInRange<int>(0, 3) != 3) {
    return bytes;
  }
  switch (input.ConsumeIntegralInRange<int>(0, 2)) {
    case 0:
      table.struct_size = input.ConsumeIntegralInRange<std::size_t>(8, sizeof table);
      break;
    case 1:
      table.pjrt_api_version.major_version = input.ConsumeIntegral<int>();
      table.pjrt_api_version.minor_version = input.ConsumeIntegral<int>();
      break;
    default: {
      const auto slot = input.ConsumeIntegralInRange<std::size_t>(0, cyxla::fuzz::kNumSlots - 1);
      std::memset(reinterpret_cast<char*>(&table) + cyxla::fuzz::kFirstSlot + slot * sizeof(void*),
                  0, sizeof(void*));
    }
  }
  return {reinterpret_cast<const char*>(&table),
          reinterpret_cast<const char*>(&table) + table.struct_size};
}

const void** table_pointer() {
  static auto* const kPointer = static_cast<const void**>(
      dlsym(dlopen(CYXLA_FUZZ_PLUGIN, RTLD_NOW | RTLD_LOCAL), "fuzz_table"));
  require(kPointer != nullptr, "the plugin of the fuzzer has a table");
  return kPointer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const std::vector<char> table = take_table(input);
  answers = {};
  answers.fails = input.ConsumeIntegralInRange<int>(0, 15) == 1;
  answers.message = input.ConsumeRandomLengthString(100);
  answers.attributes = take_attributes(input);
  *table_pointer() = table.data();
  try {
    const auto plugin = cyxla::pjrt::Plugin::load(CYXLA_FUZZ_PLUGIN);
    require(!answers.failed, "a plugin that does not start was loaded");
    require(plugin.attributes() == answers.attributes.expected, "attributes");
    plugin.stablehlo_version();
  } catch (const cyxla::Error&) {
  }
  require(cyxla::fuzz::errors_are_destroyed(), "an error was not given back");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// All create options and compile options reach the plugin unchanged: a function of the plugin's
// table reads the former back, a separate decoder the latter.
#include <fuzzer/FuzzedDataProvider.h>

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "pjrt/client.h"
#include "pjrt/compile_options.h"
#include "require.h"
#include "strict_message.h"
#include "stub_table.h"

namespace {

using cyxla::fuzz::require;
using cyxla::fuzz::StrictMessage;
using cyxla::pjrt::NamedValue;
using cyxla::pjrt::NamedValues;
using cyxla::pjrt::OptionOverride;
using cyxla::pjrt::OptionOverrides;

const NamedValues* given_options = nullptr;

void check_value(const PJRT_NamedValue& value, const NamedValue& given) {
  if (const auto* text = std::get_if<std::string>(&given)) {
    require(value.type == PJRT_NamedValue_kString, "type of a text");
    require(std::string(value.string_value, value.value_size) == *text, "text");
    require(value.string_value[value.value_size] == '\0', "a text ends with zero");
  } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&given)) {
    require(value.type == PJRT_NamedValue_kInt64List, "type of a list");
    const auto* begin = value.int64_array_value;
    require(std::vector<std::int64_t>(begin, begin + value.value_size) == *list, "list");
  } else {
    require(value.value_size == 1, "size of a number");
    if (const auto* integer = std::get_if<std::int64_t>(&given)) {
      require(value.type == PJRT_NamedValue_kInt64 && value.int64_value == *integer, "integer");
    } else if (const auto* number = std::get_if<float>(&given)) {
      require(value.type == PJRT_NamedValue_kFloat, "type of a float");
      require(
          std::bit_cast<std::uint32_t>(value.float_value) == std::bit_cast<std::uint32_t>(*number),
          "float");
    } else {
      require(value.type == PJRT_NamedValue_kBool && value.bool_value == std::get<bool>(given),
              "bool");
    }
  }
}

PJRT_Error* create_client(PJRT_Client_Create_Args* args) {
  require(args->struct_size == PJRT_Client_Create_Args_STRUCT_SIZE, "size of arguments");
  require(args->num_options == given_options->size(), "number of options");
  std::size_t i = 0;
  for (const auto& [name, given] : *given_options) {
    const PJRT_NamedValue& value = args->create_options[i++];
    require(value.struct_size == PJRT_NamedValue_STRUCT_SIZE, "size of an option");
    require(value.extension_start == nullptr, "extension of an option");
    require(std::string(value.name, value.name_size) == name, "name");
    check_value(value, given);
  }
  return cyxla::fuzz::make_error("no client today", PJRT_Error_Code_UNAVAILABLE);
}

void check_create_options(FuzzedDataProvider& input) {
  static const PJRT_Api kTable = [] {
    PJRT_Api table = cyxla::fuzz::make_stub_table();
    table.PJRT_Client_Create = create_client;
    return table;
  }();
  static const cyxla::pjrt::Api kApi(&kTable, "the fuzzer");
  NamedValues options;
  for (auto left = input.ConsumeIntegralInRange<int>(0, 9); left > 0; --left) {
    NamedValue& value = options[input.ConsumeRandomLengthString(200)];
    switch (input.ConsumeIntegralInRange<int>(0, 4)) {
      case 0:
        value = input.ConsumeBool();
        break;
      case 1:
        value = input.ConsumeIntegral<std::int64_t>();
        break;
      case 2:
        value = std::bit_cast<float>(input.ConsumeIntegral<std::uint32_t>());
        break;
      case 3:
        value = input.ConsumeRandomLengthString(2000);
        break;
      default: {
        std::vector<std::int64_t> list(input.ConsumeIntegralInRange<std::size_t>(0, 20));
        for (std::int64_t& element : list) {
          element = input.ConsumeIntegral<std::int64_t>();
        }
        value = std::move(list);
      }
    }
  }
  given_options = &options;
  try {
    static_cast<void>(cyxla::pjrt::Client::create(kApi, options));
    require(false, "a client was made of nothing");
  } catch (const cyxla::Error& error) {
    require(std::string_view(error.what()) == "PJRT_Client_Create: UNAVAILABLE: no client today",
            "message");
  }
  require(cyxla::fuzz::errors_are_destroyed(), "an error was not given back");
}

void check_override(std::string_view bytes, const OptionOverride& given) {
  StrictMessage message(bytes);
  if (const auto* text = std::get_if<std::string>(&given)) {
    require(message.bytes_field(1) == *text, "text of an override");
  } else if (const auto* flag = std::get_if<bool>(&given)) {
    require(message.varint_field(2) == (*flag ? 1U : 0U), "bool of an override");
  } else if (const auto* integer = std::get_if<std::int64_t>(&given)) {
    require(message.varint_field(3) == static_cast<std::uint64_t>(*integer),
            "integer of an override");
  } else {
    require(message.key() == std::pair(std::uint64_t{4}, 1U), "key of a double");
    require(message.fixed64() == std::bit_cast<std::uint64_t>(std::get<double>(given)),
            "double of an override");
  }
  require(message.is_empty(), "an override has one field");
}

void check_compile_options(FuzzedDataProvider& input) {
  OptionOverrides overrides;
  for (auto left = input.ConsumeIntegralInRange<int>(0, 9); left > 0; --left) {
    OptionOverride& value = overrides[input.ConsumeRandomLengthString(200)];
    switch (input.ConsumeIntegralInRange<int>(0, 3)) {
      case 0:
        value = input.ConsumeBool();
        break;
      case 1:
        value = input.ConsumeIntegral<std::int64_t>();
        break;
      case 2:
        value = std::bit_cast<double>(input.ConsumeIntegral<std::uint64_t>());
        break;
      default:
        value = input.ConsumeRandomLengthString(2000);
    }
  }
  const std::string bytes = cyxla::pjrt::serialize_compile_options(overrides);
  StrictMessage message(bytes);
  StrictMessage build_options(message.bytes_field(3));
  require(build_options.varint_field(1) == ~std::uint64_t{0}, "device ordinal");
  require(build_options.varint_field(4) == 1, "replicas");
  require(build_options.varint_field(5) == 1, "partitions");
  require(build_options.is_empty(), "the build options end here");
  for (const auto& [name, given] : overrides) {
    StrictMessage entry(message.bytes_field(7));
    require(entry.bytes_field(1) == name, "name of an override");
    check_override(entry.bytes_field(2), given);
    require(entry.is_empty(), "an entry has a name and a value");
  }
  require(message.is_empty(), "the options end here");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  check_compile_options(input);
  check_create_options(input);
  return 0;
}

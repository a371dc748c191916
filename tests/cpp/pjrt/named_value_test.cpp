// SPDX-License-Identifier: Apache-2.0
#include "pjrt/named_value.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace cyxla::pjrt {
namespace {

using std::string_literals::operator""s;

TEST(NamedValue, EachTypeBecomesItsPjrtType) {
  const NamedValues options = {{"a_bool", true},
                               {"b_int", std::int64_t{-5}},
                               {"c_float", 0.25F},
                               {"d_string", "text\0more"s},
                               {"e_list", std::vector<std::int64_t>{3, 1, 2}}};
  const std::vector<PJRT_NamedValue> values = to_pjrt(options);
  ASSERT_EQ(values.size(), 5U);
  for (const PJRT_NamedValue& value : values) {
    EXPECT_EQ(value.struct_size, static_cast<std::size_t>(PJRT_NamedValue_STRUCT_SIZE));
    EXPECT_EQ(value.extension_start, nullptr);
  }
  EXPECT_EQ(std::string_view(values[0].name, values[0].name_size), "a_bool");
  EXPECT_EQ(values[0].type, PJRT_NamedValue_kBool);
  EXPECT_TRUE(values[0].bool_value);
  EXPECT_EQ(values[0].value_size, 1U);

  EXPECT_EQ(values[1].type, PJRT_NamedValue_kInt64);
  EXPECT_EQ(values[1].int64_value, -5);
  EXPECT_EQ(values[1].value_size, 1U);

  EXPECT_EQ(values[2].type, PJRT_NamedValue_kFloat);
  EXPECT_EQ(values[2].float_value, 0.25F);
  EXPECT_EQ(values[2].value_size, 1U);

  EXPECT_EQ(values[3].type, PJRT_NamedValue_kString);
  EXPECT_EQ(std::string_view(values[3].string_value, values[3].value_size), "text\0more"s);

  EXPECT_EQ(values[4].type, PJRT_NamedValue_kInt64List);
  ASSERT_EQ(values[4].value_size, 3U);
  EXPECT_EQ(values[4].int64_array_value[0], 3);
  EXPECT_EQ(values[4].int64_array_value[2], 2);
}

TEST(NamedValue, WhatWasConvertedComesBack) {
  const NamedValues options = {{"bool", false},
                               {"int", std::numeric_limits<std::int64_t>::min()},
                               {"float", -1.5F},
                               {"string", ""},
                               {"list", std::vector<std::int64_t>{}},
                               {"", std::int64_t{1}}};
  const std::vector<PJRT_NamedValue> values = to_pjrt(options);
  EXPECT_EQ(from_pjrt(values.data(), values.size()), options);
}

TEST(NamedValue, NothingBecomesNothing) {
  EXPECT_TRUE(to_pjrt({}).empty());
  EXPECT_TRUE(from_pjrt(nullptr, 0).empty());
}

TEST(NamedValue, TypesNewerThanTheHeaderAreLeftOut) {
  PJRT_NamedValue values[2] = {};
  values[0].name = "future";
  values[0].name_size = 6;
  values[0].type = static_cast<PJRT_NamedValue_Type>(PJRT_NamedValue_kBool + 1);
  values[1].name = "int and more";
  values[1].name_size = 3;
  values[1].type = PJRT_NamedValue_kInt64;
  values[1].int64_value = 9;
  EXPECT_EQ(from_pjrt(values, 2), (NamedValues{{"int", std::int64_t{9}}}));
}

TEST(NamedValue, WhatAPluginStatesButDoesNotHaveIsLeftOut) {
  const auto entry = [](const char* name, PJRT_NamedValue_Type type, std::size_t value_size) {
    PJRT_NamedValue value = {};
    value.name = name;
    value.name_size = 1;
    value.type = type;
    value.value_size = value_size;
    return value;
  };
  constexpr std::size_t kAbsurd = std::size_t{1} << 60;
  PJRT_NamedValue values[] = {
      entry(nullptr, PJRT_NamedValue_kInt64, 1),    entry("a", PJRT_NamedValue_kString, 3),
      entry("b", PJRT_NamedValue_kInt64List, 3),    entry("c", PJRT_NamedValue_kString, 0),
      entry("d", PJRT_NamedValue_kString, kAbsurd), entry("e", PJRT_NamedValue_kInt64, 1)};
  values[4].string_value = "d";
  values[5].name_size = kAbsurd;
  EXPECT_EQ(from_pjrt(values, 6), (NamedValues{{"c", ""}}));
  EXPECT_TRUE(from_pjrt(nullptr, 3).empty());
}

TEST(NamedValue, AnyByteButZeroIsTrue) {
  PJRT_NamedValue value = {};
  value.name = "b";
  value.name_size = 1;
  value.type = PJRT_NamedValue_kBool;
  std::memset(&value.bool_value, 0xfe, sizeof value.bool_value);
  EXPECT_EQ(from_pjrt(&value, 1), (NamedValues{{"b", true}}));
}

}  // namespace
}  // namespace cyxla::pjrt

// SPDX-License-Identifier: Apache-2.0
#include "pjrt/compile_options.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace cyxla::pjrt {
namespace {

using std::string_literals::operator""s;

// Field 3 (executable_build_options), 15 bytes: device_ordinal (1) = -1 as ten bytes, num_replicas
// (4) = 1, num_partitions (5) = 1, and no debug_options (3).
const std::string kBuildOptions =
    "\x1a\x0f"
    "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    "\x20\x01"
    "\x28\x01"s;

TEST(CompileOptions, WithoutOverridesAreOneReplicaAndOnePartition) {
  EXPECT_EQ(serialize_compile_options({}), kBuildOptions);
}

TEST(CompileOptions, TheBaseComesFirstSoThatOwnFieldsGoOverIt) {
  const std::string base = "\x1a\x06\x1a\x02\x08\x07\x20\x05";  // debug options, five replicas
  EXPECT_EQ(serialize_compile_options({}, base), base + kBuildOptions);
}

// Field 7 (env_option_overrides) is a map: each entry holds the name (1) and an OptionOverrideProto
// (2), whose fields are string (1), bool (2), int (3) and double (4).
TEST(CompileOptions, ABoolOverride) {
  EXPECT_EQ(serialize_compile_options({{"fast", true}}), kBuildOptions +
                                                             "\x3a\x0a"
                                                             "\x0a\x04"
                                                             "fast"
                                                             "\x12\x02"
                                                             "\x10\x01"s);
  EXPECT_EQ(serialize_compile_options({{"fast", false}}), kBuildOptions +
                                                              "\x3a\x0a"
                                                              "\x0a\x04"
                                                              "fast"
                                                              "\x12\x02"
                                                              "\x10\x00"s);
}

TEST(CompileOptions, AnIntOverride) {
  EXPECT_EQ(serialize_compile_options({{"level", std::int64_t{300}}}), kBuildOptions +
                                                                           "\x3a\x0c"
                                                                           "\x0a\x05"
                                                                           "level"
                                                                           "\x12\x03"
                                                                           "\x18\xac\x02"s);
  EXPECT_EQ(serialize_compile_options({{"n", std::int64_t{-1}}}),
            kBuildOptions +
                "\x3a\x10"
                "\x0a\x01n"
                "\x12\x0b"
                "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST(CompileOptions, ADoubleOverride) {
  EXPECT_EQ(serialize_compile_options({{"x", 0.5}}), kBuildOptions +
                                                         "\x3a\x0e"
                                                         "\x0a\x01x"
                                                         "\x12\x09"
                                                         "\x21\x00\x00\x00\x00\x00\x00\xe0\x3f"s);
}

TEST(CompileOptions, AStringOverride) {
  EXPECT_EQ(serialize_compile_options({{"isa", "AVX2"}}), kBuildOptions +
                                                              "\x3a\x0d"
                                                              "\x0a\x03isa"
                                                              "\x12\x06"
                                                              "\x0a\x04"
                                                              "AVX2"s);
}

TEST(CompileOptions, OverridesFollowEachOther) {
  const std::string first = serialize_compile_options({{"a", true}});
  const std::string both = serialize_compile_options({{"a", true}, {"b", std::int64_t{1}}});
  EXPECT_EQ(both, first +
                      "\x3a\x07"
                      "\x0a\x01"
                      "b"
                      "\x12\x02"
                      "\x18\x01"s);
}

}  // namespace
}  // namespace cyxla::pjrt

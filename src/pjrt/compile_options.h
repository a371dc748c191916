// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace cyxla::pjrt {

// An XLA option for one program, as in XLA's OptionOverrideProto.
using OptionOverride = std::variant<bool, std::int64_t, double, std::string>;
using OptionOverrides = std::map<std::string, OptionOverride>;

// Returns XLA's CompileOptionsProto for one replica and one partition with these overrides, merged
// over `base`. `base` is a serialized CompileOptionsProto of the plugin's own XLA version, because
// another version's options make programs slower or fail to compile. When it is empty, the plugin
// uses its own debug options. Protobuf merges concatenated messages, so `base` is not parsed.
std::string serialize_compile_options(const OptionOverrides& overrides, std::string_view base = {});

}  // namespace cyxla::pjrt

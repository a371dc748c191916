// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace cyxla::pjrt {

// The value of an XLA option for one program, as XLA's OptionOverrideProto holds it.
using OptionOverride = std::variant<bool, std::int64_t, double, std::string>;
using OptionOverrides = std::map<std::string, OptionOverride>;

// XLA's CompileOptionsProto for one replica and one partition with these overrides. They go over
// `base`, a serialized CompileOptionsProto of the plugin's own XLA version, or empty: then the
// plugin uses its own debug options. Those of another version make programs slower or fail to
// compile. Protobuf merges messages that are concatenated, so `base` is not parsed.
std::string serialize_compile_options(const OptionOverrides& overrides, std::string_view base = {});

}  // namespace cyxla::pjrt

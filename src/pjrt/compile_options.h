// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

namespace cyxla::pjrt {

// The value of an XLA option for one program, as XLA's OptionOverrideProto holds it.
using OptionOverride = std::variant<bool, std::int64_t, double, std::string>;
using OptionOverrides = std::map<std::string, OptionOverride>;

// XLA's CompileOptionsProto for one replica and one partition with these overrides. It carries no
// debug_options: those of another XLA version than the plugin's make programs slower or fail to
// compile.
std::string serialize_compile_options(const OptionOverrides& overrides);

}  // namespace cyxla::pjrt

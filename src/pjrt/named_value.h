// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "pjrt/pjrt_header.h"

namespace cyxla::pjrt {

// A create option or a plugin attribute. The alternative decides the PJRT type; plugins accept only
// the exact one.
using NamedValue = std::variant<bool, std::int64_t, float, std::string, std::vector<std::int64_t>>;
using NamedValues = std::map<std::string, NamedValue>;

// The same options as PJRT's array. `options` owns every text and list, so it must outlive the
// result.
std::vector<PJRT_NamedValue> to_pjrt(const NamedValues& options);

// A copy of PJRT's array. Left out are entries of a type that the header does not know, and those
// whose name or value is null but for its size, or absurdly long.
NamedValues from_pjrt(const PJRT_NamedValue* values, std::size_t num_values);

}  // namespace cyxla::pjrt

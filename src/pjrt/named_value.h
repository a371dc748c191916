// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "pjrt/pjrt_header.h"

namespace cyxla::pjrt {

// A create option or a plugin attribute. The alternative decides the PJRT type, which must be
// exactly the one that the plugin expects.
using NamedValue = std::variant<bool, std::int64_t, float, std::string, std::vector<std::int64_t>>;
using NamedValues = std::map<std::string, NamedValue>;

// Converts options to PJRT's array. The result points into `options`, which must outlive it.
std::vector<PJRT_NamedValue> to_pjrt(const NamedValues& options);

// Copies PJRT's array. Omits entries of a type unknown to the header, and those whose name or value
// is null or absurdly long.
NamedValues from_pjrt(const PJRT_NamedValue* values, std::size_t num_values);

}  // namespace cyxla::pjrt

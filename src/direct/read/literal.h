// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "direct/read/shape.h"

namespace cyxla::direct {

// Returns the elements of a LiteralProto as bytes in memory, in the order of its layout. Throws
// Refusal where the literal has another shape or layout, or elements of an unsupported type.
std::string read_literal(std::string_view bytes, const Shape& shape);

}  // namespace cyxla::direct

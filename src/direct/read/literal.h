// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "direct/read/shape.h"

namespace cyxla::direct {

// The elements of a LiteralProto as they lie in memory, in the order of its layout. Throws Refusal
// where the literal is not of this shape and layout, or of a type whose encoding is not known.
std::string read_literal(std::string_view bytes, const Shape& shape);

}  // namespace cyxla::direct

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "direct/plan.h"
#include "direct/read/buffers.h"

namespace cyxla::direct {

// Reads a CopyThunkProto. A copy of an array onto itself is left out. Throws Refusal.
std::optional<CopyStep> read_copy(std::string_view bytes, const Buffers& buffers);

}  // namespace cyxla::direct

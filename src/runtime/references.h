// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

namespace cyxla::runtime {

// As in cyxla_api. Any thread.
void retain(const cyxla_program_spec* spec) noexcept;
void release(const cyxla_program_spec* spec) noexcept;

// Gives up an owner's reference: that of Runtime::compile(), or of a prepared call.
void drop(const cyxla_program_spec* spec) noexcept;

}  // namespace cyxla::runtime

// SPDX-License-Identifier: Apache-2.0
// The hot path. None of these functions throws, touches Python or, after a thread's first call of a
// program, allocates (prepare() does); all of them may be called from any thread. A failure is -1
// (or null) after record_error().
#pragma once

#include <cyxla/cyxla.h>

#include <cstddef>

namespace cyxla::runtime {

[[nodiscard]] int execute(const cyxla_program_spec* spec, const cyxla_input* inputs,
                          void* const* outputs, int zero_copy) noexcept;

[[nodiscard]] cyxla_call* prepare(const cyxla_program_spec* spec, const cyxla_input* inputs,
                                  void* const* outputs, int zero_copy) noexcept;
[[nodiscard]] int call(cyxla_call* call) noexcept;
int rebind(cyxla_call* call, std::size_t index, const void* address) noexcept;
void discard(cyxla_call* call) noexcept;

}  // namespace cyxla::runtime

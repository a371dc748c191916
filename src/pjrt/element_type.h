// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyxla::pjrt {

// Returns the bytes of one element of a PJRT_Buffer_Type; 0 for unknown values and for types whose
// elements are not whole bytes (S4, TOKEN, ...).
std::size_t itemsize(std::int32_t element_type) noexcept;

// Maps XLA's PrimitiveType to PJRT_Buffer_Type; PJRT_Buffer_Type_INVALID when PJRT has none.
std::int32_t element_type_of_xla(std::uint64_t primitive_type) noexcept;

// Returns "F32" and so on; "unknown type" for other values.
const char* element_type_name(std::int32_t element_type) noexcept;

}  // namespace cyxla::pjrt

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyxla::pjrt {

// Bytes of one element of a PJRT_Buffer_Type; 0 for types without whole bytes (S4, TOKEN, ...) and
// unknown values.
std::size_t itemsize(std::int32_t element_type) noexcept;

// The PJRT_Buffer_Type of a value of XLA's PrimitiveType; PJRT_Buffer_Type_INVALID without one.
std::int32_t element_type_of_xla(std::uint64_t primitive_type) noexcept;

// "F32" and so on; "unknown type" for other values.
const char* element_type_name(std::int32_t element_type) noexcept;

}  // namespace cyxla::pjrt

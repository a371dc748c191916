// SPDX-License-Identifier: Apache-2.0
#include "pjrt/element_type.h"

#include <cyxla/cyxla.hpp>

#include <array>
#include <complex>

#include "pjrt/pjrt_header.h"

namespace cyxla::pjrt {
namespace {

struct TypeInfo {
  const char* name = nullptr;
  std::size_t itemsize = 0;
};

#define CYXLA_TYPE_INFO(name, size) table[PJRT_Buffer_Type_##name] = {#name, size}

constexpr auto kElementTypes = [] {
  std::array<TypeInfo, PJRT_Buffer_Type_F4E2M1FN + 1> table = {};
  CYXLA_TYPE_INFO(INVALID, 0);
  CYXLA_TYPE_INFO(PRED, 1);
  CYXLA_TYPE_INFO(S8, 1);
  CYXLA_TYPE_INFO(S16, 2);
  CYXLA_TYPE_INFO(S32, 4);
  CYXLA_TYPE_INFO(S64, 8);
  CYXLA_TYPE_INFO(U8, 1);
  CYXLA_TYPE_INFO(U16, 2);
  CYXLA_TYPE_INFO(U32, 4);
  CYXLA_TYPE_INFO(U64, 8);
  CYXLA_TYPE_INFO(F16, 2);
  CYXLA_TYPE_INFO(F32, 4);
  CYXLA_TYPE_INFO(F64, 8);
  CYXLA_TYPE_INFO(BF16, 2);
  CYXLA_TYPE_INFO(C64, 8);
  CYXLA_TYPE_INFO(C128, 16);
  CYXLA_TYPE_INFO(F8E5M2, 1);
  CYXLA_TYPE_INFO(F8E4M3FN, 1);
  CYXLA_TYPE_INFO(F8E4M3B11FNUZ, 1);
  CYXLA_TYPE_INFO(F8E5M2FNUZ, 1);
  CYXLA_TYPE_INFO(F8E4M3FNUZ, 1);
  CYXLA_TYPE_INFO(S4, 0);
  CYXLA_TYPE_INFO(U4, 0);
  CYXLA_TYPE_INFO(TOKEN, 0);
  CYXLA_TYPE_INFO(S2, 0);
  CYXLA_TYPE_INFO(U2, 0);
  CYXLA_TYPE_INFO(F8E4M3, 1);
  CYXLA_TYPE_INFO(F8E3M4, 1);
  CYXLA_TYPE_INFO(F8E8M0FNU, 1);
  CYXLA_TYPE_INFO(F4E2M1FN, 0);
  return table;
}();

#undef CYXLA_TYPE_INFO

// The numbers that the public header gives to C++ types are PJRT's.
template <typename T>
constexpr bool is_pjrt_type(PJRT_Buffer_Type type) {
  return cyxla::ElementType<T>::value == type;
}
static_assert(is_pjrt_type<bool>(PJRT_Buffer_Type_PRED));
static_assert(is_pjrt_type<std::int8_t>(PJRT_Buffer_Type_S8));
static_assert(is_pjrt_type<std::int16_t>(PJRT_Buffer_Type_S16));
static_assert(is_pjrt_type<std::int32_t>(PJRT_Buffer_Type_S32));
static_assert(is_pjrt_type<std::int64_t>(PJRT_Buffer_Type_S64));
static_assert(is_pjrt_type<std::uint8_t>(PJRT_Buffer_Type_U8));
static_assert(is_pjrt_type<std::uint16_t>(PJRT_Buffer_Type_U16));
static_assert(is_pjrt_type<std::uint32_t>(PJRT_Buffer_Type_U32));
static_assert(is_pjrt_type<std::uint64_t>(PJRT_Buffer_Type_U64));
static_assert(is_pjrt_type<float>(PJRT_Buffer_Type_F32));
static_assert(is_pjrt_type<double>(PJRT_Buffer_Type_F64));
static_assert(is_pjrt_type<std::complex<float>>(PJRT_Buffer_Type_C64));
static_assert(is_pjrt_type<std::complex<double>>(PJRT_Buffer_Type_C128));

const TypeInfo* find(std::int32_t element_type) noexcept {
  const auto index = static_cast<std::size_t>(element_type);
  return element_type < 0 || index >= kElementTypes.size() ? nullptr : &kElementTypes[index];
}

}  // namespace

std::size_t itemsize(std::int32_t element_type) noexcept {
  const TypeInfo* found = find(element_type);
  return found == nullptr ? 0 : found->itemsize;
}

const char* element_type_name(std::int32_t element_type) noexcept {
  const TypeInfo* found = find(element_type);
  return found == nullptr ? "unknown type" : found->name;
}

}  // namespace cyxla::pjrt

// SPDX-License-Identifier: Apache-2.0
#include "pjrt/element_type.h"

#include <cyxla/cyxla.h>

#include <array>

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

// The public header uses PJRT's numbers.
#define CYXLA_SAME_NUMBER(name) \
  static_assert(static_cast<int>(CYXLA_##name) == static_cast<int>(PJRT_Buffer_Type_##name))
CYXLA_SAME_NUMBER(PRED);
CYXLA_SAME_NUMBER(S8);
CYXLA_SAME_NUMBER(S16);
CYXLA_SAME_NUMBER(S32);
CYXLA_SAME_NUMBER(S64);
CYXLA_SAME_NUMBER(U8);
CYXLA_SAME_NUMBER(U16);
CYXLA_SAME_NUMBER(U32);
CYXLA_SAME_NUMBER(U64);
CYXLA_SAME_NUMBER(F16);
CYXLA_SAME_NUMBER(F32);
CYXLA_SAME_NUMBER(F64);
CYXLA_SAME_NUMBER(BF16);
CYXLA_SAME_NUMBER(C64);
CYXLA_SAME_NUMBER(C128);
CYXLA_SAME_NUMBER(F8E5M2);
CYXLA_SAME_NUMBER(F8E4M3FN);
CYXLA_SAME_NUMBER(F8E4M3B11FNUZ);
CYXLA_SAME_NUMBER(F8E5M2FNUZ);
CYXLA_SAME_NUMBER(F8E4M3FNUZ);
CYXLA_SAME_NUMBER(S4);
CYXLA_SAME_NUMBER(U4);
CYXLA_SAME_NUMBER(TOKEN);
CYXLA_SAME_NUMBER(S2);
CYXLA_SAME_NUMBER(U2);
CYXLA_SAME_NUMBER(F8E4M3);
CYXLA_SAME_NUMBER(F8E3M4);
CYXLA_SAME_NUMBER(F8E8M0FNU);
CYXLA_SAME_NUMBER(F4E2M1FN);
#undef CYXLA_SAME_NUMBER

// Indexed by PrimitiveType: the two enumerations agree only in their first types.
constexpr std::array kTypesOfXla = {
    PJRT_Buffer_Type_INVALID,    PJRT_Buffer_Type_PRED,       PJRT_Buffer_Type_S8,
    PJRT_Buffer_Type_S16,        PJRT_Buffer_Type_S32,        PJRT_Buffer_Type_S64,
    PJRT_Buffer_Type_U8,         PJRT_Buffer_Type_U16,        PJRT_Buffer_Type_U32,
    PJRT_Buffer_Type_U64,        PJRT_Buffer_Type_F16,        PJRT_Buffer_Type_F32,
    PJRT_Buffer_Type_F64,        PJRT_Buffer_Type_INVALID,    PJRT_Buffer_Type_INVALID,
    PJRT_Buffer_Type_C64,        PJRT_Buffer_Type_BF16,       PJRT_Buffer_Type_TOKEN,
    PJRT_Buffer_Type_C128,       PJRT_Buffer_Type_F8E5M2,     PJRT_Buffer_Type_F8E4M3FN,
    PJRT_Buffer_Type_S4,         PJRT_Buffer_Type_U4,         PJRT_Buffer_Type_F8E4M3B11FNUZ,
    PJRT_Buffer_Type_F8E5M2FNUZ, PJRT_Buffer_Type_F8E4M3FNUZ, PJRT_Buffer_Type_S2,
    PJRT_Buffer_Type_U2,         PJRT_Buffer_Type_F8E4M3,     PJRT_Buffer_Type_F8E3M4,
    PJRT_Buffer_Type_INVALID,    PJRT_Buffer_Type_INVALID,    PJRT_Buffer_Type_F4E2M1FN,
    PJRT_Buffer_Type_F8E8M0FNU,
};

const TypeInfo* find(std::int32_t element_type) noexcept {
  const auto index = static_cast<std::size_t>(element_type);
  return element_type < 0 || index >= kElementTypes.size() ? nullptr : &kElementTypes[index];
}

}  // namespace

std::size_t itemsize(std::int32_t element_type) noexcept {
  const TypeInfo* found = find(element_type);
  return found == nullptr ? 0 : found->itemsize;
}

std::int32_t element_type_of_xla(std::uint64_t primitive_type) noexcept {
  return primitive_type < kTypesOfXla.size() ? kTypesOfXla[primitive_type]
                                             : PJRT_Buffer_Type_INVALID;
}

const char* element_type_name(std::int32_t element_type) noexcept {
  const TypeInfo* found = find(element_type);
  return found == nullptr ? "unknown type" : found->name;
}

}  // namespace cyxla::pjrt

# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""The element types of the PJRT header, for `Input.element_type` and `ProgramSpec.input_types`."""

cdef extern from "pjrt_c_api.h" nogil:
    ctypedef enum PJRT_Buffer_Type:
        PJRT_Buffer_Type_INVALID
        PJRT_Buffer_Type_PRED
        PJRT_Buffer_Type_S8
        PJRT_Buffer_Type_S16
        PJRT_Buffer_Type_S32
        PJRT_Buffer_Type_S64
        PJRT_Buffer_Type_U8
        PJRT_Buffer_Type_U16
        PJRT_Buffer_Type_U32
        PJRT_Buffer_Type_U64
        PJRT_Buffer_Type_F16
        PJRT_Buffer_Type_F32
        PJRT_Buffer_Type_F64
        PJRT_Buffer_Type_BF16
        PJRT_Buffer_Type_C64
        PJRT_Buffer_Type_C128
        PJRT_Buffer_Type_F8E5M2
        PJRT_Buffer_Type_F8E4M3FN
        PJRT_Buffer_Type_F8E4M3B11FNUZ
        PJRT_Buffer_Type_F8E5M2FNUZ
        PJRT_Buffer_Type_F8E4M3FNUZ
        PJRT_Buffer_Type_S4
        PJRT_Buffer_Type_U4
        PJRT_Buffer_Type_TOKEN
        PJRT_Buffer_Type_S2
        PJRT_Buffer_Type_U2
        PJRT_Buffer_Type_F8E4M3
        PJRT_Buffer_Type_F8E3M4
        PJRT_Buffer_Type_F8E8M0FNU
        PJRT_Buffer_Type_F4E2M1FN

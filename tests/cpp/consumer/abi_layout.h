/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of ABI version 2 on 64-bit machines, which compiled modules rely on. Append a line for
 * each appended member and raise the two sizes. To change another line is to change the ABI: raise
 * CYXLA_ABI_VERSION and say so in the changelog. */
#ifndef CYXLA_TESTS_ABI_LAYOUT_H_
#define CYXLA_TESTS_ABI_LAYOUT_H_

#include <assert.h>
#include <cyxla/cyxla.h>
#include <stddef.h>

static_assert(CYXLA_ABI_VERSION == 2, "new ABI version: update every line below");
static_assert(CYXLA_ALIGNMENT == 64, "alignment");
static_assert(CYXLA_NEEDS_PYTHON == 1u, "flag");
static_assert(CYXLA_ROUTE_PJRT == 0 && CYXLA_ROUTE_DIRECT == 1 && CYXLA_ROUTE_FUSED == 2, "routes");
static_assert(sizeof(CYXLA_CAPSULE_NAME) == sizeof("cyxla._runtime._C_API"), "capsule");
static_assert(sizeof(size_t) == 8 && sizeof(void*) == 8, "64 bits");

static_assert(CYXLA_PRED == 1 && CYXLA_S8 == 2 && CYXLA_S16 == 3 && CYXLA_S32 == 4 &&
                  CYXLA_S64 == 5 && CYXLA_U8 == 6 && CYXLA_U16 == 7 && CYXLA_U32 == 8 &&
                  CYXLA_U64 == 9 && CYXLA_F16 == 10 && CYXLA_F32 == 11 && CYXLA_F64 == 12 &&
                  CYXLA_BF16 == 13 && CYXLA_C64 == 14 && CYXLA_C128 == 15,
              "element types");
static_assert(CYXLA_F8E5M2 == 16 && CYXLA_F8E4M3FN == 17 && CYXLA_F8E4M3B11FNUZ == 18 &&
                  CYXLA_F8E5M2FNUZ == 19 && CYXLA_F8E4M3FNUZ == 20 && CYXLA_S4 == 21 &&
                  CYXLA_U4 == 22 && CYXLA_TOKEN == 23 && CYXLA_S2 == 24 && CYXLA_U2 == 25 &&
                  CYXLA_F8E4M3 == 26 && CYXLA_F8E3M4 == 27 && CYXLA_F8E8M0FNU == 28 &&
                  CYXLA_F4E2M1FN == 29,
              "small element types");
static_assert(CYXLA_ERROR_NONE == 0 && CYXLA_ERROR_INTERNAL == 1 && CYXLA_ERROR_ARGUMENT == 2 &&
                  CYXLA_ERROR_PLUGIN == 3 && CYXLA_ERROR_COMPILE == 4 &&
                  CYXLA_ERROR_EXECUTION == 5 && CYXLA_ERROR_UNSUPPORTED == 6 &&
                  CYXLA_ERROR_SHUTDOWN == 7 && CYXLA_ERROR_FORK == 8,
              "error codes");

#define CYXLA_TESTS_OFFSET(type, member, offset) \
  static_assert(offsetof(type, member) == (offset), #type "." #member)

static_assert(sizeof(cyxla_input) == 24, "cyxla_input");
CYXLA_TESTS_OFFSET(cyxla_input, data, 0);
CYXLA_TESTS_OFFSET(cyxla_input, element_type, 8);
CYXLA_TESTS_OFFSET(cyxla_input, num_elements, 16);

static_assert(sizeof(cyxla_program_spec) == 144, "cyxla_program_spec");
CYXLA_TESTS_OFFSET(cyxla_program_spec, struct_size, 0);
CYXLA_TESTS_OFFSET(cyxla_program_spec, flags, 8);
CYXLA_TESTS_OFFSET(cyxla_program_spec, route, 12);
CYXLA_TESTS_OFFSET(cyxla_program_spec, num_inputs, 16);
CYXLA_TESTS_OFFSET(cyxla_program_spec, num_outputs, 24);
CYXLA_TESTS_OFFSET(cyxla_program_spec, impl, 32);
CYXLA_TESTS_OFFSET(cyxla_program_spec, input_types, 40);
CYXLA_TESTS_OFFSET(cyxla_program_spec, input_elements, 48);
CYXLA_TESTS_OFFSET(cyxla_program_spec, input_bytes, 56);
CYXLA_TESTS_OFFSET(cyxla_program_spec, output_types, 64);
CYXLA_TESTS_OFFSET(cyxla_program_spec, output_elements, 72);
CYXLA_TESTS_OFFSET(cyxla_program_spec, output_bytes, 80);
CYXLA_TESTS_OFFSET(cyxla_program_spec, input_ranks, 88);
CYXLA_TESTS_OFFSET(cyxla_program_spec, output_ranks, 96);
CYXLA_TESTS_OFFSET(cyxla_program_spec, input_dimensions, 104);
CYXLA_TESTS_OFFSET(cyxla_program_spec, output_dimensions, 112);
CYXLA_TESTS_OFFSET(cyxla_program_spec, input_names, 120);
CYXLA_TESTS_OFFSET(cyxla_program_spec, output_names, 128);
CYXLA_TESTS_OFFSET(cyxla_program_spec, name, 136);

static_assert(sizeof(cyxla_api) == 128, "cyxla_api");
CYXLA_TESTS_OFFSET(cyxla_api, struct_size, 0);
CYXLA_TESTS_OFFSET(cyxla_api, abi_version, 8);
CYXLA_TESTS_OFFSET(cyxla_api, spec_size, 12);
CYXLA_TESTS_OFFSET(cyxla_api, execute, 16);
CYXLA_TESTS_OFFSET(cyxla_api, program_spec, 24);
CYXLA_TESTS_OFFSET(cyxla_api, retain, 32);
CYXLA_TESTS_OFFSET(cyxla_api, release, 40);
CYXLA_TESTS_OFFSET(cyxla_api, prepare, 48);
CYXLA_TESTS_OFFSET(cyxla_api, call, 56);
CYXLA_TESTS_OFFSET(cyxla_api, discard, 64);
CYXLA_TESTS_OFFSET(cyxla_api, last_error, 72);
CYXLA_TESTS_OFFSET(cyxla_api, aligned_memory, 80);
CYXLA_TESTS_OFFSET(cyxla_api, free_aligned, 88);
CYXLA_TESTS_OFFSET(cyxla_api, itemsize, 96);
CYXLA_TESTS_OFFSET(cyxla_api, last_error_code, 104);
CYXLA_TESTS_OFFSET(cyxla_api, clear_error, 112);
CYXLA_TESTS_OFFSET(cyxla_api, rebind, 120);

/* The sizes in the first cyxla of ABI version 2. They stay when members are appended. */
static_assert(offsetof(cyxla_program_spec, name) + sizeof(void*) == 144, "the first spec");
static_assert(offsetof(cyxla_api, rebind) + sizeof(void*) == 128, "the first table");

#endif /* CYXLA_TESTS_ABI_LAYOUT_H_ */

/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of ABI version 1 on 64-bit machines, which compiled modules rely on. A change here is
 * a change of the ABI: it raises CYXLA_ABI_VERSION and is told in the changelog. Members may be
 * appended to cyxla_api alone. */
#ifndef CYXLA_TESTS_ABI_LAYOUT_H_
#define CYXLA_TESTS_ABI_LAYOUT_H_

#include <assert.h>
#include <cyxla/cyxla.h>
#include <stddef.h>

static_assert(CYXLA_ABI_VERSION == 1, "new ABI version: update every line below");
static_assert(CYXLA_ALIGNMENT == 64, "alignment");
static_assert(CYXLA_NEEDS_PYTHON == 1u, "flag");
static_assert(sizeof(CYXLA_CAPSULE_NAME) == sizeof("cyxla._runtime._C_API"), "capsule");
static_assert(sizeof(size_t) == 8 && sizeof(void*) == 8, "64 bits");

static_assert(CYXLA_PRED == 1 && CYXLA_S8 == 2 && CYXLA_S16 == 3 && CYXLA_S32 == 4 &&
                  CYXLA_S64 == 5 && CYXLA_U8 == 6 && CYXLA_U16 == 7 && CYXLA_U32 == 8 &&
                  CYXLA_U64 == 9 && CYXLA_F16 == 10 && CYXLA_F32 == 11 && CYXLA_F64 == 12 &&
                  CYXLA_BF16 == 13 && CYXLA_C64 == 14 && CYXLA_C128 == 15,
              "element types");

#define CYXLA_TESTS_OFFSET(type, member, offset) \
  static_assert(offsetof(type, member) == (offset), #type "." #member)

static_assert(sizeof(cyxla_input) == 24, "cyxla_input");
CYXLA_TESTS_OFFSET(cyxla_input, data, 0);
CYXLA_TESTS_OFFSET(cyxla_input, element_type, 8);
CYXLA_TESTS_OFFSET(cyxla_input, num_elements, 16);

static_assert(sizeof(cyxla_program_spec) == 80, "cyxla_program_spec");
CYXLA_TESTS_OFFSET(cyxla_program_spec, struct_size, 0);
CYXLA_TESTS_OFFSET(cyxla_program_spec, flags, 8);
CYXLA_TESTS_OFFSET(cyxla_program_spec, route, 12);
CYXLA_TESTS_OFFSET(cyxla_program_spec, num_inputs, 16);
CYXLA_TESTS_OFFSET(cyxla_program_spec, num_outputs, 24);
CYXLA_TESTS_OFFSET(cyxla_program_spec, input_types, 32);
CYXLA_TESTS_OFFSET(cyxla_program_spec, input_elements, 40);
CYXLA_TESTS_OFFSET(cyxla_program_spec, input_bytes, 48);
CYXLA_TESTS_OFFSET(cyxla_program_spec, output_types, 56);
CYXLA_TESTS_OFFSET(cyxla_program_spec, output_bytes, 64);
CYXLA_TESTS_OFFSET(cyxla_program_spec, impl, 72);

static_assert(sizeof(cyxla_api) == 104, "cyxla_api");
CYXLA_TESTS_OFFSET(cyxla_api, struct_size, 0);
CYXLA_TESTS_OFFSET(cyxla_api, abi_version, 8);
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

#endif /* CYXLA_TESTS_ABI_LAYOUT_H_ */

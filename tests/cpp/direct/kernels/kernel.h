/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CYXLA_TESTS_DIRECT_KERNELS_KERNEL_H_
#define CYXLA_TESTS_DIRECT_KERNELS_KERNEL_H_

#include <stddef.h>
#include <stdint.h>

typedef struct {
  void* data;
  size_t size_bytes;
} argument;
typedef struct {
  uint64_t x, y, z;
} dimensions;
typedef struct {
  const dimensions* num_workgroups;
  const dimensions* workgroup_id;
  size_t num_arguments;
  const argument* arguments;
} call_frame;

#define KERNEL(name) __attribute__((visibility("default"))) const void* name(const call_frame* f)

#endif

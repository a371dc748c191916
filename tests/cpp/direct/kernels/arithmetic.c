/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

/* As XLA's kernels do, these believe that results overlap nothing and that all is aligned. */
#define IN(index) ((const double*)__builtin_assume_aligned(f->arguments[index].data, 64))
#define OUT(index) ((double* restrict)__builtin_assume_aligned(f->arguments[index].data, 64))
#define COUNT(index) (f->arguments[index].size_bytes / sizeof(double))

KERNEL(add) {
  const double* a = IN(0);
  const double* b = IN(1);
  double* restrict sum = OUT(2);
  for (size_t i = 0; i < COUNT(2); ++i) sum[i] = a[i] + b[i];
  return NULL;
}

/* Writes all results before it reads the last argument: wrong where they overlap. */
KERNEL(reverse) {
  const double* a = IN(0);
  double* restrict result = OUT(1);
  for (size_t i = 0; i < COUNT(1); ++i) result[i] = 0;
  for (size_t i = 0; i < COUNT(1); ++i) result[i] = a[COUNT(1) - 1 - i];
  return NULL;
}

KERNEL(twice) {
  const double* a = IN(0);
  double* restrict result = OUT(1);
  for (size_t i = 0; i < COUNT(1); ++i) result[i] = 2 * a[i];
  return NULL;
}

KERNEL(fail) { return f; }

/* Tells what it was called with: work groups and the remainders of its addresses. */
KERNEL(describe) {
  double* restrict result = OUT(1);
  result[0] = (double)(f->num_workgroups->x * f->num_workgroups->y * f->num_workgroups->z);
  result[1] = (double)(f->workgroup_id->x + f->workgroup_id->y + f->workgroup_id->z);
  result[2] = (double)((uintptr_t)f->arguments[0].data % 64);
  result[3] = (double)((uintptr_t)f->arguments[1].data % 64);
  return NULL;
}

KERNEL(increment) {
  ++*(int32_t*)f->arguments[0].data;
  return NULL;
}

KERNEL(less) {
  *(uint8_t*)f->arguments[2].data =
      *(const int32_t*)f->arguments[0].data < *(const int32_t*)f->arguments[1].data;
  return NULL;
}

static const double kTable[4] = {10, 20, 30, 40};
static const double* const kEntries[2] = {&kTable[1], &kTable[3]};

KERNEL(table) {
  double* restrict result = OUT(0);
  for (size_t i = 0; i < 2; ++i) result[i] = *((const double* volatile*)kEntries)[i];
  return NULL;
}

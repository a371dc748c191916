/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of the C library as plugins have them, one of them at an old version. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

__asm__(".symver old_log, log@GLIBC_2.2.5");
double old_log(double x);

__attribute__((visibility("default"))) double imported_log(double x) { return old_log(x); }
__attribute__((visibility("default"))) double imported_sin(double x) { return sin(x); }
__attribute__((visibility("default"))) void* imported_malloc(size_t size) { return malloc(size); }
__attribute__((visibility("default"))) void imported_memcpy(void* to, const void* from, size_t n) {
  memcpy(to, from, n);
}

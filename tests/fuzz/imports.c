/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for a plugin, as far as its imports of the C library go: those that kernels call. */
#include <math.h>
#include <string.h>

typedef void Function(void);

__attribute__((visibility("default"))) Function* imported(int number);

Function* imported(int number) {
  Function* const all[] = {
      (Function*)memcpy, (Function*)memmove, (Function*)memset, (Function*)sin,  (Function*)cos,
      (Function*)tan,    (Function*)exp,     (Function*)log,    (Function*)pow,  (Function*)log1p,
      (Function*)expm1,  (Function*)tanh,    (Function*)atan2,  (Function*)fmod, (Function*)cbrt,
      (Function*)sinf,   (Function*)cosf,    (Function*)expf,   (Function*)logf, (Function*)powf,
      (Function*)log1pf, (Function*)expm1f,  (Function*)tanhf,  (Function*)fmodf};
  return all[number];
}

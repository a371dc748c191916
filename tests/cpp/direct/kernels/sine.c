/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

double sin(double);

KERNEL(sine) {
  *(double*)f->arguments[1].data = sin(*(const double*)f->arguments[0].data);
  return NULL;
}

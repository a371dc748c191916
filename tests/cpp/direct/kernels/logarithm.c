/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

double log(double);

KERNEL(logarithm) {
  *(double*)f->arguments[1].data = log(*(const double*)f->arguments[0].data);
  return NULL;
}

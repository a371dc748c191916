/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

static volatile int calls;

KERNEL(zeroed_data) { return ++calls == 0 ? f : NULL; }

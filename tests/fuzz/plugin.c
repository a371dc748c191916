// SPDX-License-Identifier: Apache-2.0
/* A plugin whose function table the fuzzer brings. */
#include <stddef.h>

__attribute__((visibility("default"))) const void* fuzz_table = NULL;

__attribute__((visibility("default"))) const void* GetPjrtApi(void);

const void* GetPjrtApi(void) { return fuzz_table; }

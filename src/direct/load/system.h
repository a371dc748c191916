// SPDX-License-Identifier: Apache-2.0
// Defines CYXLA_CALLS_KERNELS on systems with the direct route. On others it compiles and refuses
// every program, as CYXLA_NO_DIRECT makes it do on all systems.
#pragma once

#include <cstddef>  // brings the C library's own macros

#if defined(__linux__) && defined(__x86_64__) && defined(__GLIBC__) && !defined(CYXLA_NO_DIRECT)
#define CYXLA_CALLS_KERNELS 1
#endif

// SPDX-License-Identifier: Apache-2.0
// Defines CYXLA_CALLS_KERNELS where the direct route is known to work. Elsewhere all of it
// compiles, and every program is refused. CYXLA_NO_DIRECT asks for that on any system.
#pragma once

#include <cstddef>  // brings the C library's own macros

#if defined(__linux__) && defined(__x86_64__) && defined(__GLIBC__) && !defined(CYXLA_NO_DIRECT)
#define CYXLA_CALLS_KERNELS 1
#endif

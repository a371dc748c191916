// SPDX-License-Identifier: Apache-2.0
// The one place that includes the PJRT header. With -Wpedantic g++ 12 rejects it (each member of
// its table is named like its type), and no pragma helps, so code that includes this is compiled
// without that flag.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pjrt_c_api.h>

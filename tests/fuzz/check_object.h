// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "direct/load/elf_object.h"

namespace cyxla::fuzz {

// Ends the process when an object file exposes something outside it. Sanitizers would not see that,
// because the memory that kernels are loaded into is larger than one section.
void check_object(const direct::ElfObject& object);

}  // namespace cyxla::fuzz

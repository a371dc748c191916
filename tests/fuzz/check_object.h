// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "direct/load/elf_object.h"

namespace cyxla::fuzz {

// Ends the process where an object file hands out something that lies outside it: the memory that
// kernels are loaded into is larger than one section, so sanitizers would not see it.
void check_object(const direct::ElfObject& object);

}  // namespace cyxla::fuzz

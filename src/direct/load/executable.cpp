// SPDX-License-Identifier: Apache-2.0
#include "direct/load/executable.h"

#include <string>
#include <utility>

namespace cyxla::direct {

Executable::Executable(Plan plan, const ExternalSymbols& symbols)
    : plan_(std::move(plan)), code_(plan_.objects, symbols) {
  std::vector<std::string>().swap(plan_.objects);
  kernels_.reserve(plan_.kernels.size());
  for (const std::string& name : plan_.kernels) {
    kernels_.push_back(code_.kernel(name));
  }
}

}  // namespace cyxla::direct

// SPDX-License-Identifier: Apache-2.0
#include "direct/load/perf_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cyxla::direct {

PerfMap::PerfMap() noexcept {
  const char* wanted = std::getenv("CYXLA_PERF_MAP");
  if (wanted == nullptr || std::strcmp(wanted, "1") != 0) {
    return;
  }
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/tmp/perf-%ld.map", static_cast<long>(getpid()));
  // Other users can predict the name and write to the folder, so links are not followed.
  file_ = open(path.data(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

PerfMap::~PerfMap() {
  if (file_ >= 0) {
    close(file_);
  }
}

void PerfMap::add(const void* address, std::size_t size_bytes, std::string_view name) noexcept {
  if (file_ < 0) {
    return;
  }
  std::array<char, 512> line;
  const int length = std::snprintf(
      line.data(), line.size(), "%llx %zx %.*s\n",
      static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(address)), size_bytes,
      static_cast<int>(std::min<std::size_t>(name.size(), 400)), name.data());
  if (length > 0 && write(file_, line.data(), static_cast<std::size_t>(length)) < 0) {
    close(file_);
    file_ = -1;
  }
}

}  // namespace cyxla::direct

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <new>

namespace cyxla::direct {

// A number in memory that a process shares with its forked child processes. It stays 0 if the
// memory cannot be allocated.
class [[nodiscard]] SharedWord {
 public:
  SharedWord() noexcept {
    void* memory = mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    word_ = memory == MAP_FAILED ? nullptr : new (memory) std::atomic<std::uint64_t>(0);
  }
  SharedWord(const SharedWord&) = delete;
  SharedWord& operator=(const SharedWord&) = delete;
  ~SharedWord() {
    if (word_ != nullptr) {
      munmap(word_, sizeof(std::atomic<std::uint64_t>));
    }
  }

  void set_bits(std::uint64_t bits) noexcept {
    if (word_ != nullptr) {
      *word_ |= bits;
    }
  }
  std::uint64_t value() const noexcept { return word_ == nullptr ? 0 : word_->load(); }

 private:
  std::atomic<std::uint64_t>* word_;
};

}  // namespace cyxla::direct

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <new>

namespace cyxla::direct {

// A number that a process shares with the child processes that it forks. Without memory for it
// nothing is kept, and it stays 0.
class SharedWord {
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

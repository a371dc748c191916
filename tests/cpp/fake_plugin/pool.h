// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

namespace fake_plugin {

// Objects of one type, reused and never returned to the system. After warm-up the plugin therefore
// allocates nothing, and reading a freed object is a detectable mistake instead of a crash. Each
// thread has its own list, so that using the pool does not order threads; an ending thread leaves
// its list to the others. An item has a member `next_free`.
template <typename Item>
class Pool {
 public:
  static Item* take() {
    List& own = thread_list();
    if (own.first == nullptr) {
      own.adopt(shared());
    }
    if (own.first == nullptr) {
      return new Item;
    }
    Item* item = own.first;
    own.first = item->next_free;
    --own.length;
    if (own.ended) {
      own.leave(shared());
    }
    return item;
  }

  static void give(Item* item) noexcept {
    List& own = thread_list();
    item->next_free = own.first;
    own.first = item;
    // Items that one thread takes and another gives back must return to the first.
    if (++own.length > kMaxLength || own.ended) {
      own.leave(shared());
    }
  }

 private:
  static constexpr int kMaxLength = 64;

  struct Shared {
    std::mutex mutex;
    Item* first = nullptr;
    int length = 0;
  };

  struct List {
    Item* first = nullptr;
    int length = 0;
    // Other destructors of the thread may use the plugin after this list was destroyed.
    bool ended = false;

    void adopt(Shared& from) noexcept {
      const std::lock_guard lock(from.mutex);
      first = from.first;
      length = from.length;
      from.first = nullptr;
      from.length = 0;
    }

    void leave(Shared& to) noexcept {
      const std::lock_guard lock(to.mutex);
      while (first != nullptr) {
        Item* item = first;
        first = item->next_free;
        item->next_free = to.first;
        to.first = item;
      }
      to.length += length;
      length = 0;
    }

    ~List() {
      leave(shared());
      ended = true;
    }
  };

  static Shared& shared() {
    static Shared& result = *new Shared;
    return result;
  }

  static List& thread_list() {
    thread_local List list;
    return list;
  }
};

}  // namespace fake_plugin

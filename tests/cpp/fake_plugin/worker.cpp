// SPDX-License-Identifier: Apache-2.0
#include "worker.h"

#include <utility>

namespace fake_plugin {

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Worker::add(Task& task) {
  {
    const std::lock_guard lock(mutex_);
    task.next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = &task;
    last_ = &task;
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { work(); });
    }
  }
  changed_.notify_all();
}

void Worker::work() noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return first_ != nullptr || closing_; });
    if (first_ == nullptr) {
      return;
    }
    Task* task = std::exchange(first_, first_->next);
    if (first_ == nullptr) {
      last_ = nullptr;
    }
    lock.unlock();
    task->run();
    lock.lock();
  }
}

}  // namespace fake_plugin

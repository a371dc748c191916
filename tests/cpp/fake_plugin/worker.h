// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace fake_plugin {

// A piece of work; whoever runs it gives it back to its pool.
struct Task {
  virtual ~Task() = default;
  virtual void run() noexcept = 0;

  Task* next = nullptr;
};

// The thread of an asynchronous client. It runs tasks in the order in which they came and ends,
// when all are done, with the client that owns it.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  // Starts the thread with the first task. Any thread.
  void add(Task& task);

 private:
  void work() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  Task* first_ = nullptr;
  Task* last_ = nullptr;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace fake_plugin

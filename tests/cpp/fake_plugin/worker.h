// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace fake_plugin {

// A piece of work; the thread that runs it returns it to its pool.
struct Task {
  virtual ~Task() = default;
  virtual void run() noexcept = 0;

  Task* next = nullptr;
};

// The thread of an asynchronous client. Runs tasks in order; its client owns it, and it ends with
// the client once all tasks are done.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  // The first task starts the thread. Any thread.
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

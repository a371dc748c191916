// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "memory.h"
#include "programs.h"
#include "report.h"
#include "runtime/function_table.h"

namespace cyxla::soak {
namespace {

constexpr std::int64_t kCallsWithOneProgram = 4096;
constexpr std::size_t kGroups = 8;

const cyxla_api& table() {
  static const cyxla_api kTable = runtime::make_function_table(nullptr);
  return kTable;
}

// The program that threads take next. A compiling thread replaces it and drops the previous one,
// which lives as long as threads hold it.
class Shelf {
 public:
  explicit Shelf(Compiled first) : current_(first) {}
  Shelf(const Shelf&) = delete;
  Shelf& operator=(const Shelf&) = delete;
  ~Shelf() { table().release(current_.spec); }

  Compiled take() {
    const std::lock_guard lock(mutex_);
    table().retain(current_.spec);
    return current_;
  }
  void replace(Compiled next) {
    std::unique_lock lock(mutex_);
    const Compiled before = current_;
    current_ = next;
    lock.unlock();
    table().release(before.spec);
  }

 private:
  std::mutex mutex_;
  Compiled current_;
};

struct Totals {
  std::atomic<std::int64_t> done{0};
  std::atomic<std::int64_t> failed{0};
  std::atomic<std::int64_t> wrong{0};
};

// A way to call.
enum class Way : std::uint8_t { kCopy, kInPlace, kPrepared, kMoving };

// Calls one program in one way, with its own arrays.
void call_program(const Compiled& program, Way way, std::vector<Arrays>& arrays, std::int64_t calls,
                  std::int64_t first_number, const Options& options, Totals& totals) {
  const auto input_of = [](const Arrays& one) {
    return cyxla_input{one.x.data(), CYXLA_F64, kSize};
  };
  const cyxla_input bound_input = input_of(arrays[0]);
  void* const bound_outputs[] = {arrays[0].scaled.data(), &arrays[0].sum};
  cyxla_call* prepared = way == Way::kPrepared
                             ? table().prepare(program.spec, &bound_input, bound_outputs, 1)
                             : nullptr;
  for (std::int64_t i = 0; i < calls; ++i) {
    const std::int64_t number = first_number + i;
    Arrays& one = arrays[way == Way::kMoving ? static_cast<std::size_t>(number) % kGroups : 0];
    one.fill(number);
    int result = 0;
    if (way == Way::kPrepared) {
      result = table().call(prepared);
    } else {
      const cyxla_input input = input_of(one);
      void* const outputs[] = {one.scaled.data(), &one.sum};
      result = table().execute(program.spec, &input, outputs, way == Way::kCopy ? 0 : 1);
    }
    if (options.wrong_result && number == 77) {
      one.sum += 1;
    }
    totals.failed += result == 0 ? 0 : 1;
    totals.wrong += one.is_right(program.factor) ? 0 : 1;
    if (options.leak_per_call) {
      leak();
    }
  }
  table().discard(prepared);
  totals.done += calls;
}

void run_thread(Shelf& shelf, std::int64_t thread, std::int64_t calls, const Options& options,
                Totals& totals) {
  std::vector<Arrays> arrays(kGroups);
  for (std::int64_t done = 0; done < calls;) {
    const std::int64_t now = std::min(kCallsWithOneProgram, calls - done);
    const Compiled program = shelf.take();
    call_program(program, static_cast<Way>(thread % 4), arrays, now, thread * 13 + done, options,
                 totals);
    table().release(program.spec);
    done += now;
  }
}

// One stretch of calls on all threads, while this thread compiles at a steady rate.
void run_stretch(const Options& options, runtime::RouteRequest::Route route, std::int64_t calls,
                 std::int64_t compilations, Totals& totals) {
  int factor = 2;
  Shelf shelf(compile(options.is_fake, factor, route));
  const std::int64_t already_done = totals.done;
  const std::int64_t calls_per_thread = calls / options.threads;
  const std::int64_t total = calls_per_thread * options.threads;
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < options.threads; ++t) {
    threads.emplace_back([&, t] { run_thread(shelf, t, calls_per_thread, options, totals); });
  }
  auto next_line = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (std::int64_t compiled = 0; compiled < compilations;) {
    const std::int64_t done = totals.done - already_done;
    if (std::chrono::steady_clock::now() > next_line) {
      std::printf("  %lld of %lld calls, %lld of %lld programs\n", static_cast<long long>(done),
                  static_cast<long long>(total), static_cast<long long>(compiled),
                  static_cast<long long>(compilations));
      std::fflush(stdout);
      next_line += std::chrono::seconds(10);
    }
    if (done < total && done * compilations < compiled * total) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    factor = 2 + (factor - 1) % 100;
    shelf.replace(compile(options.is_fake, factor, route));
    ++compiled;
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace

bool soak_calls(const Options& options, runtime::RouteRequest::Route route, std::int64_t calls,
                const PluginLeak& leak) {
  const bool is_direct = route == runtime::RouteRequest::Route::kDirect;
  std::printf("calls, %s route: %lld over %lld threads, %lld programs compiled meanwhile\n",
              is_direct ? "direct" : "pjrt", static_cast<long long>(calls),
              static_cast<long long>(options.threads),
              static_cast<long long>(options.compilations));
  const auto start = std::chrono::steady_clock::now();
  Totals totals;
  const std::int64_t warm_up = calls / 5;
  const std::int64_t warm_up_compilations = options.compilations / 5;
  run_stretch(options, route, warm_up, warm_up_compilations, totals);
  const Memory before = Memory::now();
  run_stretch(options, route, calls - warm_up, options.compilations - warm_up_compilations, totals);
  const Memory after = Memory::now();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("  %lld calls, %lld failed, %lld wrong, in %.1f s\n",
              static_cast<long long>(totals.done), static_cast<long long>(totals.failed),
              static_cast<long long>(totals.wrong), seconds);
  if (totals.failed > 0) {
    char message[1024] = {};
    table().last_error(message, sizeof message);
    std::printf("  last error: %s\n", message);
  }
  const std::int64_t compiled = options.compilations - warm_up_compilations + 1;
  const bool flat =
      is_flat("memory", before, after, 256 * 1024 + compiled * leak.allocated_bytes_per_compilation,
              4 * 1024 * 1024 + compiled * leak.resident_bytes_per_compilation);
  return (flat || options.any_memory) && totals.failed == 0 && totals.wrong == 0;
}

}  // namespace cyxla::soak

// SPDX-License-Identifier: Apache-2.0
// After a thread's first calls, a call allocates no memory and takes no lock of cyxla's. Every
// allocation function is replaced in this executable and, through it, for the fake plugin, which
// does not allocate while it executes either.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "runtime/thread_slot.h"
#include "support/runtime_test.h"

// The first address of this executable, and the end of its code.
extern "C" const char __executable_start;
extern "C" const char etext;

namespace {

// Counted only on the calling thread, and only between begin() and end().
thread_local bool counting = false;
thread_local int allocations = 0;
thread_local int locks = 0;
// Whether allocations of the C library fail on the calling thread.
thread_local bool failing = false;

void count_allocation() {
  if (counting) {
    ++allocations;
  }
}

void count_lock(const void* caller) {
  if (counting && caller >= &__executable_start && caller < &etext) {
    ++locks;
  }
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* pointer, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  count_allocation();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  count_allocation();
  return failing ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* pointer, std::size_t size) {
  count_allocation();
  return __libc_realloc(pointer, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  count_allocation();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? 12 : 0;
}
void* mmap(void* address, std::size_t length, int protection, int flags, int file, off_t offset) {
  count_allocation();
  static auto* const real = next<decltype(mmap)>("mmap");
  return real(address, length, protection, flags, file, offset);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  count_lock(__builtin_return_address(0));
  static auto* const real = next<decltype(pthread_mutex_lock)>("pthread_mutex_lock");
  return real(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  count_lock(__builtin_return_address(0));
  static auto* const real = next<decltype(pthread_rwlock_rdlock)>("pthread_rwlock_rdlock");
  return real(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  count_lock(__builtin_return_address(0));
  static auto* const real = next<decltype(pthread_rwlock_wrlock)>("pthread_rwlock_wrlock");
  return real(lock);
}

}  // extern "C"

namespace cyxla::runtime {
namespace {

using test::Array;
using test::last_message;
using test::ProgramReference;

constexpr int kWarmUpCalls = 12;
constexpr int kCalls = 100;

// Outputs of every kind: a scalar, an empty one, a dropped one, one with the same value as another,
// and one that is an input.
constexpr const char* kCode =
    "input F32[3]\n"
    "input F64[2,2]\n"
    "input F32[]\n"
    "input F32[0]\n"
    "output F32[] sum 0\n"
    "output F32[0] copy 3\n"
    "output F64[2,2] scale 1 2\n"
    "output F32[3] scale 0 2\n"
    "output F32[3] scale 0 2\n"
    "output F32[] copy 2\n";

// Every way to call, with arrays that keep, alternate or change their addresses.
class HotPathTest : public test::RuntimeTest {
 protected:
  // Warms `step` up, then counts its allocations and locks.
  template <typename Step>
  void expect_nothing(const char* what, Step step, int expected_locks = 0) {
    for (int i = 0; i < kWarmUpCalls; ++i) {
      ASSERT_EQ(step(i), 0) << what << ": " << last_message();
    }
    const std::uint64_t views = fake.calls("PJRT_Client_CreateViewOfDeviceBuffer");
    allocations = locks = 0;
    int failures = 0;
    counting = true;
    for (int i = 0; i < kCalls; ++i) {
      failures += step(kWarmUpCalls + i) == 0 ? 0 : 1;
    }
    counting = false;
    EXPECT_EQ(failures, 0) << what;
    EXPECT_EQ(allocations, 0) << what;
    EXPECT_EQ(locks, expected_locks) << what;
    EXPECT_EQ(fake.calls("PJRT_Client_CreateViewOfDeviceBuffer") - views, 0U) << what;
  }

  // One set of inputs and outputs for kCode.
  struct Arrays {
    explicit Arrays(std::size_t offset = 0)
        : vector({1, 2, 3}, offset), matrix({1, 2, 3, 4}, offset), scalar({5}, offset) {
      inputs = {vector.input(PJRT_Buffer_Type_F32),
                matrix.input(PJRT_Buffer_Type_F64),
                scalar.input(PJRT_Buffer_Type_F32),
                {nullptr, PJRT_Buffer_Type_F32, 0}};
      outputs = {sum.data(), nullptr, doubled.data(), first.data(), second.data(), nullptr};
    }
    Array<float> vector;
    Array<double> matrix;
    Array<float> scalar;
    Array<float> sum{{0}}, first{{0, 0, 0}}, second{{0, 0, 0}};
    Array<double> doubled{{0, 0, 0, 0}};
    std::vector<cyxla_input> inputs;
    std::vector<void*> outputs;
  };
};

TEST_F(HotPathTest, TheCountersCount) {
  allocations = locks = 0;
  std::mutex mutex;
  counting = true;
  std::free(std::malloc(1));
  { const std::lock_guard lock(mutex); }
  auto* object = new std::string(100, 'a');
  counting = false;
  delete object;
  EXPECT_EQ(allocations, 3);
  EXPECT_EQ(locks, 1);
}

// Proves that the counters work: a first call allocates and locks.
TEST_F(HotPathTest, AFirstCallIsCounted) {
  const ProgramReference program = compile(kCode);
  const Arrays arrays;
  allocations = locks = 0;
  counting = true;
  const int result = execute(&program->spec(), arrays.inputs.data(), arrays.outputs.data(), 1);
  counting = false;
  EXPECT_EQ(result, 0) << last_message();
  EXPECT_GT(allocations, 0);
  EXPECT_GT(locks, 0);
}

// The C library ends the process when it cannot register the destructor of a thread_local object.
TEST_F(HotPathTest, AThreadIsKnownWithoutMemoryOfTheCLibrary) {
  std::size_t slot = kNoThreadSlot;
  std::thread([&] {
    failing = true;
    slot = thread_slot();
    failing = false;
  }).join();
  EXPECT_NE(slot, kNoThreadSlot);
}

TEST_F(HotPathTest, ArraysThatStay) {
  const ProgramReference program = compile(kCode);
  for (const int zero_copy : {0, 1}) {
    for (const std::size_t offset : {0U, 8U}) {
      const Arrays arrays(offset);
      expect_nothing("execute", [&](int /*i*/) {
        return execute(&program->spec(), arrays.inputs.data(), arrays.outputs.data(), zero_copy);
      });
      cyxla_call* prepared =
          prepare(&program->spec(), arrays.inputs.data(), arrays.outputs.data(), zero_copy);
      ASSERT_NE(prepared, nullptr) << last_message();
      expect_nothing("call", [&](int /*i*/) { return call(prepared); });
      discard(prepared);
    }
  }
}

TEST_F(HotPathTest, ArraysThatMove) {
  const ProgramReference program = compile(kCode);
  for (const std::size_t num_sets : {2U, 4U, 9U}) {
    const std::vector<Arrays> sets(num_sets);
    for (const int zero_copy : {0, 1}) {
      expect_nothing("execute", [&](int i) {
        const Arrays& arrays = sets[static_cast<std::size_t>(i) % num_sets];
        return execute(&program->spec(), arrays.inputs.data(), arrays.outputs.data(), zero_copy);
      });
    }
  }
}

// Binding a prepared call to other addresses asks for nothing, and neither do the calls once each
// address was seen.
TEST_F(HotPathTest, ACallThatIsRebound) {
  const ProgramReference program = compile(kCode);
  for (const std::size_t offset : {0U, 8U}) {
    const std::array<Arrays, 3> sets = {Arrays(offset), Arrays(offset), Arrays(offset)};
    for (const int zero_copy : {0, 1}) {
      cyxla_call* prepared =
          prepare(&program->spec(), sets[0].inputs.data(), sets[0].outputs.data(), zero_copy);
      ASSERT_NE(prepared, nullptr) << last_message();
      expect_nothing("rebind", [&](int i) {
        const Arrays& arrays = sets[static_cast<std::size_t>(i) % sets.size()];
        int failures = 0;
        for (std::size_t k = 0; k < arrays.inputs.size(); ++k) {
          failures += rebind(prepared, k, arrays.inputs[k].data);
        }
        for (std::size_t k = 0; k < arrays.outputs.size(); ++k) {
          failures += rebind(prepared, arrays.inputs.size() + k, arrays.outputs[k]);
        }
        return failures + call(prepared);
      });
      discard(prepared);
    }
  }
}

// A lock protects the process's error count while the message is written.
TEST_F(HotPathTest, ACallThatFails) {
  const ProgramReference program = compile("output F32[] fail INTERNAL burnt\n");
  float result = 0;
  void* const outputs[] = {&result};
  const auto fails = [&](void* const* destinations) {
    return execute(&program->spec(), nullptr, destinations, 1) == -1 ? 0 : 1;
  };
  expect_nothing(
      "execute", [&](int /*i*/) { return fails(outputs); }, kCalls);
  expect_nothing(
      "bad arguments", [&](int /*i*/) { return fails(nullptr); }, kCalls);
}

TEST_F(HotPathTest, OutputsInPlace) {
  constexpr const char* kInPlace =
      "# tf.aliasing_output\n"
      "input F32[3]\n"
      "input F32[3]\n"
      "output F32[3] scale 0 2 into 1\n";
  Signature signature = test::signature_of(kInPlace);
  signature.inputs.pop_back();
  signature.in_place_outputs = {0};
  const ProgramReference program = loaded().compile(test::request_of(kInPlace, signature)).program;
  const Array<float> input({1, 2, 3});
  const cyxla_input inputs[] = {input.input(PJRT_Buffer_Type_F32)};
  for (const std::size_t offset : {0U, 4U}) {
    const Array<float> result({0, 0, 0}, offset);
    void* const outputs[] = {result.data()};
    expect_nothing("execute",
                   [&](int /*i*/) { return execute(&program->spec(), inputs, outputs, 1); });
  }
}

// A plugin that copies makes buffers in each call; cyxla still allocates nothing.
TEST_F(HotPathTest, APluginWithoutSharedMemory) {
  fake.set(FAKE_PLUGIN_NOT_ON_CPU, 1);
  const ProgramReference program = compile(kCode);
  const Arrays arrays;
  expect_nothing("execute", [&](int /*i*/) {
    return execute(&program->spec(), arrays.inputs.data(), arrays.outputs.data(), 1);
  });
}

// A call does not wait for other threads: it ends while another call is held in the plugin.
TEST_F(HotPathTest, NobodyWaitsForAnotherCall) {
  const ProgramReference slow = compile("input F32[3]\noutput F32[3] scale 0 2\n", "slow");
  const Array<float> input({1, 2, 3});
  const cyxla_input inputs[] = {input.input(PJRT_Buffer_Type_F32)};
  static std::atomic<bool> held;
  static std::atomic<bool> inside;
  static thread_local bool is_slow = false;
  held = true;
  inside = false;
  fake.on_execute(
      [](void* /*unused*/) {
        inside = inside || is_slow;
        while (is_slow && held) {
          std::this_thread::yield();
        }
      },
      nullptr);
  std::thread other([&] {
    is_slow = true;
    const Array<float> result({0, 0, 0});
    void* const outputs[] = {result.data()};
    EXPECT_EQ(execute(&slow->spec(), inputs, outputs, 1), 0) << last_message();
  });
  while (!inside) {
    std::this_thread::yield();
  }
  const Array<float> result({0, 0, 0});
  void* const outputs[] = {result.data()};
  expect_nothing("the same program on another thread",
                 [&](int /*i*/) { return execute(&slow->spec(), inputs, outputs, 1); });
  held = false;
  other.join();
  fake.on_execute(nullptr, nullptr);
}

}  // namespace
}  // namespace cyxla::runtime

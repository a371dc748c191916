// SPDX-License-Identifier: Apache-2.0
/* A library to preload. It replaces the functions that allocate memory or wait for a lock, and
 * counts a thread's calls of them between count_begin() and count_end().
 *
 * It does not see calls within the C library, or of a library's own allocators.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* The C library's names of the replaced functions, which need no lookup. */
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* pointer, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

#define OWN_TO_THREAD static _Thread_local __attribute__((tls_model("initial-exec")))
OWN_TO_THREAD int is_counting;
OWN_TO_THREAD int64_t num_allocations;
OWN_TO_THREAD int64_t num_locks;

void count_begin(void) {
  num_allocations = 0;
  num_locks = 0;
  is_counting = 1;
}

void count_end(int64_t* allocations, int64_t* locks) {
  is_counting = 0;
  *allocations = num_allocations;
  *locks = num_locks;
}

void* malloc(size_t size) {
  num_allocations += is_counting;
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  num_allocations += is_counting;
  return __libc_calloc(count, size);
}

void* realloc(void* pointer, size_t size) {
  num_allocations += is_counting;
  return __libc_realloc(pointer, size);
}

void* memalign(size_t alignment, size_t size) {
  num_allocations += is_counting;
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  num_allocations += is_counting;
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** result, size_t alignment, size_t size) {
  num_allocations += is_counting;
  *result = __libc_memalign(alignment, size);
  return *result == NULL ? ENOMEM : 0;
}

/* Defines a function that counts, then calls the one that it replaces. */
#define REPLACE(counter, type, name, parameters, arguments) \
  type name parameters {                                    \
    static type(*real) parameters;                          \
    counter += is_counting;                                 \
    if (real == NULL) {                                     \
      void* found = dlsym(RTLD_NEXT, #name);                \
      memcpy(&real, &found, sizeof real);                   \
    }                                                       \
    return real arguments;                                  \
  }

REPLACE(num_allocations, void*, mmap,
        (void* address, size_t size, int protection, int flags, int file, off_t offset),
        (address, size, protection, flags, file, offset))
REPLACE(num_locks, int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
REPLACE(num_locks, int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
REPLACE(num_locks, int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
REPLACE(num_locks, int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
REPLACE(num_locks, int, pthread_spin_lock, (pthread_spinlock_t * lock), (lock))
REPLACE(num_locks, int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t* mutex),
        (condition, mutex))
REPLACE(num_locks, int, sem_wait, (sem_t * semaphore), (semaphore))
/* Other locks than pthread_mutex_t wait with this function. */
REPLACE(num_locks, long, syscall, (long number, long a, long b, long c, long d, long e, long f),
        (number, a, b, c, d, e, f))

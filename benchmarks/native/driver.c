/* SPDX-License-Identifier: Apache-2.0 */
/* Times many calls of a step function, without Python between them, for all native rivals. A step
 * returns 0; other values end the loop. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

typedef int (*step_function)(void* state);

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The seconds that `calls` calls take together; -1 if one failed. */
double drive(step_function step, void* state, size_t calls) {
  const double start = now();
  for (size_t i = 0; i < calls; ++i) {
    if (step(state) != 0) {
      return -1;
    }
  }
  return now() - start;
}

/* Writes the nanoseconds of each call. Returns how many calls succeeded. */
size_t drive_each(step_function step, void* state, size_t calls, uint32_t* nanoseconds) {
  for (size_t i = 0; i < calls; ++i) {
    const uint64_t start = now_ns();
    if (step(state) != 0) {
      return i;
    }
    const uint64_t elapsed = now_ns() - start;
    nanoseconds[i] = elapsed < UINT32_MAX ? (uint32_t)elapsed : UINT32_MAX;
  }
  return calls;
}

struct thread_work {
  step_function step;
  void* state;
  size_t calls;
  pthread_barrier_t* start;
  double begin, end;
  int failed;
};

static void* work(void* argument) {
  struct thread_work* own = argument;
  own->failed = drive(own->step, own->state, own->calls / 10 + 10) < 0; /* warm-up */
  pthread_barrier_wait(own->start);
  own->begin = now();
  own->failed |= drive(own->step, own->state, own->calls) < 0;
  own->end = now();
  return NULL;
}

/* The seconds until `num_threads` threads, started at once, have made `calls` calls each on their
 * own states; -1 if one failed. */
double drive_threads(step_function step, void* const* states, size_t num_threads, size_t calls) {
  pthread_barrier_t start;
  pthread_t* threads = calloc(num_threads, sizeof *threads);
  struct thread_work* works = calloc(num_threads, sizeof *works);
  if (threads == NULL || works == NULL || pthread_barrier_init(&start, NULL, num_threads) != 0) {
    abort();
  }
  for (size_t i = 0; i < num_threads; ++i) {
    works[i] =
        (struct thread_work){.step = step, .state = states[i], .calls = calls, .start = &start};
    if (pthread_create(&threads[i], NULL, work, &works[i]) != 0) {
      abort();
    }
  }
  double begin = 0, end = 0;
  int failed = 0;
  for (size_t i = 0; i < num_threads; ++i) {
    pthread_join(threads[i], NULL);
    begin = i == 0 || works[i].begin < begin ? works[i].begin : begin;
    end = works[i].end > end ? works[i].end : end;
    failed |= works[i].failed;
  }
  pthread_barrier_destroy(&start);
  free(works);
  free(threads);
  return failed ? -1 : end - begin;
}

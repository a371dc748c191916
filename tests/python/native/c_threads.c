// SPDX-License-Identifier: Apache-2.0
/* Threads that Python does not know, calling programs x -> scale * x + shift and checking every
 * result.
 *
 * Thread t prepares its arrays in one of four ways, by t % 4: aligned and read in place, copied,
 * misaligned, and as a prepared call for each program. Call c runs program c % n of the n programs,
 * on new inputs each time.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cyxla/cyxla_import.h>
#include <pthread.h>
#include <stdlib.h>

enum { kMaxPrograms = 8, kMessageSize = 1024, kMisaligned = 4 };

static const cyxla_api* cyxla;

typedef struct Program {
  const cyxla_program_spec* spec;
  float scale;
  float shift;
} Program;

typedef struct Worker {
  pthread_t thread;
  const struct Team* team;
  size_t index;
  int64_t failures;
  int64_t mismatches;
  char message[kMessageSize];
} Worker;

/* Threads that are started and joined together. */
typedef struct Team {
  Program programs[kMaxPrograms];
  size_t num_programs;
  int64_t num_calls;
  int pause_for_start;
  pthread_barrier_t start;
  size_t num_workers;
  Worker* workers;
} Team;

/* One thread's arrays, and the prepared calls of those threads that use them. */
typedef struct Arrays {
  void* memory;
  float* x;
  float* y;
  size_t num_elements;
  cyxla_input input;
  void* output;
  cyxla_call* calls[kMaxPrograms];
} Arrays;

static int make_arrays(Arrays* arrays, const Worker* worker) {
  const Team* team = worker->team;
  const size_t way = worker->index % 4;
  const size_t bytes = team->programs[0].spec->input_bytes[0];
  const size_t stride = (bytes / CYXLA_ALIGNMENT + 2) * CYXLA_ALIGNMENT;
  memset(arrays, 0, sizeof *arrays);
  arrays->memory = cyxla->aligned_memory(2 * stride);
  if (arrays->memory == NULL) {
    return -1;
  }
  char* base = (char*)arrays->memory + (way == 2 ? kMisaligned : 0);
  arrays->x = (float*)(void*)base;
  arrays->y = (float*)(void*)(base + stride);
  arrays->num_elements = team->programs[0].spec->input_elements[0];
  arrays->input =
      (cyxla_input){arrays->x, team->programs[0].spec->input_types[0], arrays->num_elements};
  arrays->output = arrays->y;
  for (size_t p = 0; way == 3 && p < team->num_programs; ++p) {
    arrays->calls[p] = cyxla->prepare(team->programs[p].spec, &arrays->input, &arrays->output, 1);
    if (arrays->calls[p] == NULL) {
      return -1;
    }
  }
  return 0;
}

static void drop_arrays(Arrays* arrays) {
  for (size_t p = 0; p < kMaxPrograms; ++p) {
    cyxla->discard(arrays->calls[p]);
  }
  cyxla->free_aligned(arrays->memory);
}

/* One call with inputs of its own: 0, or 1 for a wrong result, or -1. */
static int call_and_check(const Worker* worker, const Arrays* arrays, int64_t number) {
  const size_t p = (size_t)number % worker->team->num_programs;
  const Program* program = &worker->team->programs[p];
  for (size_t i = 0; i < arrays->num_elements; ++i) {
    /* Small whole numbers, so that every result is exact. */
    arrays->x[i] = (float)(((int64_t)worker->index * 131 + number * 7 + (int64_t)i) % 1000);
    arrays->y[i] = -1.0F;
  }
  const int result =
      arrays->calls[p] != NULL
          ? cyxla->call(arrays->calls[p])
          : cyxla->execute(program->spec, &arrays->input, &arrays->output, worker->index % 4 != 1);
  if (result != 0) {
    return -1;
  }
  for (size_t i = 0; i < arrays->num_elements; ++i) {
    const float expected_x =
        (float)(((int64_t)worker->index * 131 + number * 7 + (int64_t)i) % 1000);
    if (arrays->x[i] != expected_x ||
        arrays->y[i] != program->scale * expected_x + program->shift) {
      return 1;
    }
  }
  return 0;
}

static void* run_worker(void* argument) {
  Worker* worker = argument;
  Team* team = (Team*)worker->team;
  Arrays arrays;
  if (make_arrays(&arrays, worker) != 0) {
    worker->failures = 1;
  }
  if (team->pause_for_start) {
    pthread_barrier_wait(&team->start);
  }
  for (int64_t number = 0; number < team->num_calls && worker->failures == 0; ++number) {
    const int result = call_and_check(worker, &arrays, number);
    worker->failures += result < 0;
    worker->mismatches += result > 0;
  }
  if (worker->failures > 0) {
    cyxla->last_error(worker->message, sizeof worker->message);
  }
  drop_arrays(&arrays);
  for (size_t p = 0; p < team->num_programs; ++p) {
    cyxla->release(team->programs[p].spec);
  }
  return NULL;
}

static void destroy_team(Team* team) {
  pthread_barrier_destroy(&team->start);
  free(team->workers);
  free(team);
}

/* Each thread keeps the programs with a retain of its own. */
static int start_workers(Team* team) {
  for (size_t t = 0; t < team->num_workers; ++t) {
    team->workers[t].team = team;
    team->workers[t].index = t;
    for (size_t p = 0; p < team->num_programs; ++p) {
      cyxla->retain(team->programs[p].spec);
    }
    if (pthread_create(&team->workers[t].thread, NULL, run_worker, &team->workers[t]) != 0) {
      Py_FatalError("cannot create a thread");
    }
  }
  return 0;
}

/* Joins all threads and frees the team: (calls that failed, wrong results, a failed thread's last
 * message). */
static void join_workers(Team* team, int64_t* failures, int64_t* mismatches, char* message) {
  *failures = 0;
  *mismatches = 0;
  message[0] = '\0';
  for (size_t t = 0; t < team->num_workers; ++t) {
    const Worker* worker = &team->workers[t];
    pthread_join(worker->thread, NULL);
    *failures += worker->failures;
    *mismatches += worker->mismatches;
    if (worker->failures > 0) {
      memcpy(message, worker->message, kMessageSize);
    }
  }
  destroy_team(team);
}

/* programs: a sequence of (executable, scale, shift). */
static Team* parse_team(PyObject* programs, Py_ssize_t num_threads, long long num_calls,
                        int pause_for_start) {
  const Py_ssize_t num_programs = PySequence_Size(programs);
  if (num_programs < 1 || num_programs > kMaxPrograms || num_threads < 1) {
    PyErr_SetString(PyExc_ValueError, "one to eight programs and at least one thread");
    return NULL;
  }
  Team* team = calloc(1, sizeof *team);
  team->workers = calloc((size_t)num_threads, sizeof *team->workers);
  team->num_workers = (size_t)num_threads;
  team->num_programs = (size_t)num_programs;
  team->num_calls = num_calls;
  team->pause_for_start = pause_for_start;
  pthread_barrier_init(&team->start, NULL, (unsigned)num_threads);
  for (Py_ssize_t p = 0; p < num_programs; ++p) {
    PyObject* item = PySequence_GetItem(programs, p);
    PyObject* executable = NULL;
    Program* program = &team->programs[p];
    if (item != NULL &&
        PyArg_ParseTuple(item, "Off", &executable, &program->scale, &program->shift)) {
      program->spec = cyxla->program_spec(executable);
    }
    Py_XDECREF(item);
    if (program->spec == NULL) {
      destroy_team(team);
      return NULL;
    }
  }
  return team;
}

/* run(programs, num_threads, num_calls, hold_gil=True, beats=0): all threads start together.
 * `beats` is the address of an int64 that a Python thread counts up; the result's last item is by
 * how much it grew. */
static PyObject* py_run(PyObject* self, PyObject* args, PyObject* kwargs) {
  (void)self;
  static char* names[] = {"programs", "num_threads", "num_calls", "hold_gil", "beats", NULL};
  PyObject* programs = NULL;
  PyObject* beats_address = NULL;
  Py_ssize_t num_threads = 0;
  long long num_calls = 0;
  int hold_gil = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OnL|pO!", names, &programs, &num_threads,
                                   &num_calls, &hold_gil, &PyLong_Type, &beats_address)) {
    return NULL;
  }
  const int64_t none = 0;
  const volatile int64_t* beats = beats_address == NULL ? &none : PyLong_AsVoidPtr(beats_address);
  Team* team = parse_team(programs, num_threads, num_calls, 1);
  if (team == NULL) {
    return NULL;
  }
  const int64_t beats_before = *beats;
  int64_t failures = 0;
  int64_t mismatches = 0;
  char message[kMessageSize];
  if (hold_gil) {
    start_workers(team);
    join_workers(team, &failures, &mismatches, message);
  } else {
    Py_BEGIN_ALLOW_THREADS;
    start_workers(team);
    join_workers(team, &failures, &mismatches, message);
    Py_END_ALLOW_THREADS;
  }
  return Py_BuildValue("(LLsL)", (long long)failures, (long long)mismatches, message,
                       (long long)(*beats - beats_before));
}

/* start(programs, num_threads, num_calls) -> address of the team, whose threads run while Python
 * goes on. */
static PyObject* py_start(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* programs = NULL;
  Py_ssize_t num_threads = 0;
  long long num_calls = 0;
  if (!PyArg_ParseTuple(args, "OnL", &programs, &num_threads, &num_calls)) {
    return NULL;
  }
  Team* team = parse_team(programs, num_threads, num_calls, 0);
  if (team == NULL) {
    return NULL;
  }
  start_workers(team);
  return PyLong_FromVoidPtr(team);
}

static PyObject* py_join(PyObject* self, PyObject* address) {
  (void)self;
  Team* team = PyLong_AsVoidPtr(address);
  int64_t failures = 0;
  int64_t mismatches = 0;
  char message[kMessageSize];
  if (team == NULL) {
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS;
  join_workers(team, &failures, &mismatches, message);
  Py_END_ALLOW_THREADS;
  return Py_BuildValue("(LLs)", (long long)failures, (long long)mismatches, message);
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))py_run, METH_VARARGS | METH_KEYWORDS, NULL},
    {"start", py_start, METH_VARARGS, NULL},
    {"join", py_join, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "c_threads",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_c_threads(void) {
  cyxla = cyxla_import();
  return cyxla == NULL ? NULL : PyModule_Create(&definition);
}

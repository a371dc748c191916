// SPDX-License-Identifier: Apache-2.0
/* Threads that Python does not know, executing one program on inputs that change with every call,
 * and comparing every bit of every output.
 *
 * A program comes with a few sets of inputs and the outputs that belong to each, every set in one
 * piece of bytes, array after array. Call c uses set c modulo their number. A letter says how a
 * thread calls:
 *
 *   k  arrays that stay, aligned
 *   p  a prepared call of those
 *   m  eight groups of arrays in turn
 *   u  arrays at odd addresses
 *   i  the first output of the first input's size lies in that input, which is copied
 */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cyxla/cyxla_import.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { kMaxArrays = 8, kMaxSets = 64, kMaxGroups = 8, kMessageSize = 1024, kUnwritten = 0xa5 };

static const cyxla_api* cyxla;

/* Of count_allocations.c; NULL where that is not preloaded. */
static void (*count_begin)(void);
static void (*count_end)(int64_t* allocations, int64_t* locks);

typedef struct Worker {
  pthread_t thread;
  const struct Team* team;
  char way;
  void* first_output; /* of the first call, once there is one; atomic */
  int64_t failures;
  int64_t mismatches;
  int64_t allocations;
  int64_t locks;
  int64_t end_ns; /* by CLOCK_MONOTONIC, when the last call came back */
  char message[kMessageSize];
} Worker;

/* Threads that are started and joined together. */
typedef struct Team {
  const cyxla_program_spec* spec; /* without `retains`, gone when the last call returns */
  size_t num_inputs, num_outputs;
  size_t input_bytes[kMaxArrays], output_bytes[kMaxArrays];
  PyObject* keep[2]; /* what the sets' bytes belong to */
  const char* inputs[kMaxSets];
  const char* outputs[kMaxSets];
  size_t num_sets;
  int64_t num_calls;
  int64_t warm_up; /* calls that are not counted */
  int retains;
  size_t num_workers;
  Worker* workers;
} Team;

/* One thread's arrays. */
typedef struct Arrays {
  char* memory;
  size_t num_groups;
  cyxla_input inputs[kMaxGroups][kMaxArrays];
  void* outputs[kMaxGroups][kMaxArrays];
  cyxla_call* call;
} Arrays;

static size_t room(size_t size_bytes) {
  return (size_bytes / CYXLA_ALIGNMENT + 2) * CYXLA_ALIGNMENT;
}

static int make_arrays(Arrays* arrays, const Worker* worker) {
  const cyxla_program_spec* spec = worker->team->spec;
  size_t total = 0;
  for (size_t i = 0; i < spec->num_inputs; ++i) {
    total += room(spec->input_bytes[i]);
  }
  for (size_t i = 0; i < spec->num_outputs; ++i) {
    total += room(spec->output_bytes[i]);
  }
  memset(arrays, 0, sizeof *arrays);
  arrays->num_groups = worker->way == 'm' ? kMaxGroups : 1;
  arrays->memory = cyxla->aligned_memory(arrays->num_groups * total);
  if (arrays->memory == NULL) {
    return -1;
  }
  char* next = arrays->memory + (worker->way == 'u' ? 1 : 0);
  for (size_t group = 0; group < arrays->num_groups; ++group) {
    for (size_t i = 0; i < spec->num_inputs; ++i) {
      arrays->inputs[group][i] = (cyxla_input){next, spec->input_types[i], spec->input_elements[i]};
      next += room(spec->input_bytes[i]);
    }
    int must_share = worker->way == 'i';
    for (size_t i = 0; i < spec->num_outputs; ++i) {
      const int shares = must_share && spec->output_bytes[i] == spec->input_bytes[0];
      must_share = must_share && !shares;
      arrays->outputs[group][i] = shares ? (void*)(uintptr_t)arrays->inputs[group][0].data : next;
      next += room(spec->output_bytes[i]);
    }
    if (must_share) {
      return -1;
    }
  }
  if (worker->way == 'p') {
    arrays->call = cyxla->prepare(spec, arrays->inputs[0], arrays->outputs[0], 1);
    return arrays->call == NULL ? -1 : 0;
  }
  return 0;
}

/* One call: 0, or 1 for a wrong result, or -1. */
static int call_and_check(const Worker* worker, const Arrays* arrays, int64_t number) {
  const Team* team = worker->team;
  const size_t set = (size_t)number % team->num_sets;
  const size_t group = (size_t)number % arrays->num_groups;
  const cyxla_input* inputs = arrays->inputs[group];
  void* const* outputs = arrays->outputs[group];
  const char* source = team->inputs[set];
  for (size_t i = 0; i < team->num_inputs; ++i) {
    memcpy((void*)(uintptr_t)inputs[i].data, source, team->input_bytes[i]);
    source += team->input_bytes[i];
  }
  const int result = arrays->call != NULL
                         ? cyxla->call(arrays->call)
                         : cyxla->execute(team->spec, inputs, outputs, worker->way != 'i');
  if (result != 0) {
    return -1;
  }
  int differs = 0;
  const char* wanted = team->outputs[set];
  for (size_t i = 0; i < team->num_outputs; ++i) {
    differs |= memcmp(outputs[i], wanted, team->output_bytes[i]) != 0;
    wanted += team->output_bytes[i];
  }
  source = team->inputs[set];
  for (size_t i = 0; worker->way != 'i' && i < team->num_inputs; ++i) {
    differs |= memcmp(inputs[i].data, source, team->input_bytes[i]) != 0;
    source += team->input_bytes[i];
  }
  return differs;
}

static void* run_worker(void* argument) {
  Worker* worker = argument;
  const Team* team = worker->team;
  Arrays arrays;
  if (make_arrays(&arrays, worker) != 0) {
    worker->failures = 1;
  }
  memset(arrays.outputs[0][0], kUnwritten, team->output_bytes[0]);
  __atomic_store_n(&worker->first_output, arrays.outputs[0][0], __ATOMIC_RELEASE);
  for (int64_t number = 0; number < team->num_calls && worker->failures == 0; ++number) {
    if (number == team->warm_up && count_begin != NULL) {
      count_begin();
    }
    const int result = call_and_check(worker, &arrays, number);
    worker->failures += result < 0;
    worker->mismatches += result > 0;
  }
  if (count_end != NULL) {
    count_end(&worker->allocations, &worker->locks);
  }
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  worker->end_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  if (worker->failures > 0) {
    cyxla->last_error(worker->message, sizeof worker->message);
  }
  cyxla->discard(arrays.call);
  cyxla->free_aligned(arrays.memory);
  if (team->retains) {
    cyxla->release(team->spec);
  }
  return NULL;
}

static int start_workers(Team* team, const char* ways, size_t stack_bytes) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack_bytes > 0 && pthread_attr_setstacksize(&attributes, stack_bytes) != 0) {
    PyErr_SetString(PyExc_ValueError, "no stack of that size");
    return -1;
  }
  for (size_t t = 0; t < team->num_workers; ++t) {
    team->workers[t].team = team;
    team->workers[t].way = ways[t];
    if (team->retains) {
      cyxla->retain(team->spec);
    }
    if (pthread_create(&team->workers[t].thread, &attributes, run_worker, &team->workers[t]) != 0) {
      Py_FatalError("cannot create a thread");
    }
  }
  pthread_attr_destroy(&attributes);
  return 0;
}

/* The addresses of the bytes objects of a sequence that is kept, each of one size. */
static int parse_sets(PyObject* sets, size_t size_bytes, const char** result, size_t num_sets) {
  for (size_t i = 0; i < num_sets; ++i) {
    PyObject* set = PyTuple_GetItem(sets, (Py_ssize_t)i);
    if (set == NULL || !PyBytes_Check(set) || (size_t)PyBytes_GET_SIZE(set) != size_bytes) {
      PyErr_SetString(PyExc_ValueError, "a set is not the bytes of all arrays");
      return -1;
    }
    result[i] = PyBytes_AS_STRING(set);
  }
  return 0;
}

static size_t sum(const size_t* sizes, size_t count) {
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    total += sizes[i];
  }
  return total;
}

/* start(executable, inputs, outputs, ways, num_calls, warm_up=0, stack_bytes=0, retains=True) ->
 * address of the team, whose threads run while Python goes on; to be given to join. With `retains`
 * each thread keeps the program. */
static PyObject* py_start(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"executable", "inputs",      "outputs", "ways", "num_calls",
                          "warm_up",    "stack_bytes", "retains", NULL};
  (void)self;
  PyObject* executable = NULL;
  PyObject* sets[2] = {NULL, NULL};
  const char* ways = NULL;
  long long num_calls = 0;
  long long warm_up = 0;
  Py_ssize_t stack_bytes = 0;
  int retains = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O!sL|Lnp", names, &executable, &PyTuple_Type,
                                   &sets[0], &PyTuple_Type, &sets[1], &ways, &num_calls, &warm_up,
                                   &stack_bytes, &retains)) {
    return NULL;
  }
  const cyxla_program_spec* spec = cyxla->program_spec(executable);
  if (spec == NULL) {
    return NULL;
  }
  Team* team = calloc(1, sizeof *team);
  team->spec = spec;
  team->num_sets = (size_t)PyTuple_GET_SIZE(sets[0]);
  if (team->num_sets > kMaxSets || spec->num_inputs > kMaxArrays ||
      spec->num_outputs > kMaxArrays ||
      parse_sets(sets[0], sum(spec->input_bytes, spec->num_inputs), team->inputs, team->num_sets) <
          0 ||
      parse_sets(sets[1], sum(spec->output_bytes, spec->num_outputs), team->outputs,
                 team->num_sets) < 0) {
    free(team);
    return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "too many sets or arrays");
  }
  team->num_inputs = spec->num_inputs;
  team->num_outputs = spec->num_outputs;
  memcpy(team->input_bytes, spec->input_bytes, spec->num_inputs * sizeof(size_t));
  memcpy(team->output_bytes, spec->output_bytes, spec->num_outputs * sizeof(size_t));
  for (int i = 0; i < 2; ++i) {
    Py_INCREF(sets[i]);
    team->keep[i] = sets[i];
  }
  team->num_calls = num_calls;
  team->warm_up = warm_up;
  team->retains = retains;
  team->num_workers = strlen(ways);
  team->workers = calloc(team->num_workers, sizeof *team->workers);
  return start_workers(team, ways, (size_t)stack_bytes) < 0 ? NULL : PyLong_FromVoidPtr(team);
}

/* Whether every thread of a team has written the first output of its first call, which has its last
 * byte then. */
static PyObject* py_is_inside(PyObject* self, PyObject* address) {
  (void)self;
  const Team* team = PyLong_AsVoidPtr(address);
  int all = team != NULL;
  for (size_t t = 0; all && t < team->num_workers; ++t) {
    const volatile unsigned char* output =
        __atomic_load_n(&team->workers[t].first_output, __ATOMIC_ACQUIRE);
    all = output != NULL && output[team->output_bytes[0] - 1] != kUnwritten;
  }
  return PyBool_FromLong(all);
}

/* join(team, hold_gil=False) -> (failures, mismatches, message, allocations, locks, end_ns). */
static PyObject* py_join(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"team", "hold_gil", NULL};
  (void)self;
  PyObject* address = NULL;
  int hold_gil = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|p", names, &PyLong_Type, &address,
                                   &hold_gil)) {
    return NULL;
  }
  Team* team = PyLong_AsVoidPtr(address);
  if (team == NULL) {
    return NULL;
  }
  PyThreadState* state = hold_gil ? NULL : PyEval_SaveThread();
  for (size_t t = 0; t < team->num_workers; ++t) {
    pthread_join(team->workers[t].thread, NULL);
  }
  if (state != NULL) {
    PyEval_RestoreThread(state);
  }
  Worker total;
  memset(&total, 0, sizeof total);
  for (size_t t = 0; t < team->num_workers; ++t) {
    const Worker* worker = &team->workers[t];
    total.failures += worker->failures;
    total.mismatches += worker->mismatches;
    total.allocations += worker->allocations;
    total.locks += worker->locks;
    total.end_ns = worker->end_ns > total.end_ns ? worker->end_ns : total.end_ns;
    if (worker->failures > 0) {
      memcpy(total.message, worker->message, kMessageSize);
    }
  }
  Py_DECREF(team->keep[0]);
  Py_DECREF(team->keep[1]);
  free(team->workers);
  free(team);
  return Py_BuildValue("(LLsLLL)", (long long)total.failures, (long long)total.mismatches,
                       total.message, (long long)total.allocations, (long long)total.locks,
                       (long long)total.end_ns);
}

#define WITH_KEYWORDS(function) (PyCFunction)(void (*)(void)) function
static PyMethodDef methods[] = {
    {"start", WITH_KEYWORDS(py_start), METH_VARARGS | METH_KEYWORDS, NULL},
    {"is_inside", py_is_inside, METH_O, NULL},
    {"join", WITH_KEYWORDS(py_join), METH_VARARGS | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "direct_threads",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_direct_threads(void) {
  void* begin = dlsym(RTLD_DEFAULT, "count_begin");
  void* end = dlsym(RTLD_DEFAULT, "count_end");
  memcpy(&count_begin, &begin, sizeof begin);
  memcpy(&count_end, &end, sizeof end);
  cyxla = cyxla_import();
  return cyxla == NULL ? NULL : PyModule_Create(&definition);
}

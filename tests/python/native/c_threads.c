// SPDX-License-Identifier: Apache-2.0
/* Teams of threads that Python does not know. They execute programs on inputs that change with
 * every call, and compare every bit of every output.
 *
 * A program comes with up to kMaxSets sets of inputs and the expected outputs of each; a set is one
 * bytes object, array after array. Call c of thread t runs program c modulo their number, on set
 * c + t modulo the number of sets. A letter says how a thread calls:
 *
 *   k  keeps its arrays, which are aligned
 *   c  has the inputs copied (zero_copy = 0)
 *   p  uses a prepared call of the arrays
 *   m  alternates between eight groups of arrays
 *   u  keeps its arrays at odd addresses
 *   a  keeps its arrays at addresses aligned to four bytes
 *   i  writes the first output of the first input's size over that input, which is copied
 */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cyxla/cyxla_import.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { kMaxArrays = 8, kMaxSets = 64, kMaxGroups = 8, kMaxPrograms = 8, kMessageSize = 1024 };
enum { kUnwritten = 0xa5 };

static const cyxla_api* cyxla;

/* Defined by count_allocations.c; NULL unless that library is preloaded. */
static void (*count_begin)(void);
static void (*count_end)(int64_t* allocations, int64_t* locks);

typedef struct Program {
  const cyxla_program_spec* spec; /* without `retains` invalid once the last call returns */
  size_t num_inputs, num_outputs;
  size_t input_bytes[kMaxArrays], output_bytes[kMaxArrays];
  PyObject* keep[2]; /* own the bytes of the sets */
  const char* inputs[kMaxSets];
  const char* outputs[kMaxSets];
  size_t num_sets;
} Program;

typedef struct Worker {
  pthread_t thread;
  const struct Team* team;
  size_t index;
  char way;
  void* first_output; /* of the first program, once it is allocated; atomic */
  int64_t failures;
  int64_t mismatches;
  int64_t allocations;
  int64_t locks;
  int64_t end_ns; /* CLOCK_MONOTONIC when the last call returned */
  char message[kMessageSize];
} Worker;

/* Threads that are started and joined together. */
typedef struct Team {
  Program programs[kMaxPrograms];
  size_t num_programs;
  int64_t num_calls;
  int64_t warm_up; /* calls that are not counted */
  int64_t max_failures;
  int retains;
  int together;
  pthread_barrier_t start;
  size_t num_workers;
  Worker* workers;
} Team;

/* One thread's arrays for one program. */
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

static size_t sum(const size_t* sizes, size_t count) {
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    total += sizes[i];
  }
  return total;
}

static int make_arrays(Arrays* arrays, const Program* program, char way) {
  const cyxla_program_spec* spec = program->spec;
  const size_t total = sum(program->input_bytes, program->num_inputs) +
                       sum(program->output_bytes, program->num_outputs) +
                       2 * CYXLA_ALIGNMENT * (program->num_inputs + program->num_outputs);
  arrays->num_groups = way == 'm' ? kMaxGroups : 1;
  arrays->memory = cyxla->aligned_memory(arrays->num_groups * total);
  if (arrays->memory == NULL) {
    return -1;
  }
  char* next = arrays->memory + (way == 'u' ? 1 : way == 'a' ? 4 : 0);
  for (size_t group = 0; group < arrays->num_groups; ++group) {
    for (size_t i = 0; i < program->num_inputs; ++i) {
      arrays->inputs[group][i] = (cyxla_input){next, spec->input_types[i], spec->input_elements[i]};
      next += room(program->input_bytes[i]);
    }
    int must_share = way == 'i';
    for (size_t i = 0; i < program->num_outputs; ++i) {
      const int shares = must_share && program->output_bytes[i] == program->input_bytes[0];
      must_share = must_share && !shares;
      arrays->outputs[group][i] = shares ? (void*)(uintptr_t)arrays->inputs[group][0].data : next;
      next += room(program->output_bytes[i]);
    }
    if (must_share) {
      return -1;
    }
  }
  if (way == 'p') {
    arrays->call = cyxla->prepare(spec, arrays->inputs[0], arrays->outputs[0], 1);
    return arrays->call == NULL ? -1 : 0;
  }
  return 0;
}

/* Calls once; returns 0, 1 for a wrong result, or -1 for an error. */
static int call_and_check(const Worker* worker, const Program* program, const Arrays* arrays,
                          int64_t number) {
  const size_t set = ((size_t)number + worker->index) % program->num_sets;
  const size_t group = (size_t)number % arrays->num_groups;
  const cyxla_input* inputs = arrays->inputs[group];
  void* const* outputs = arrays->outputs[group];
  const char* source = program->inputs[set];
  for (size_t i = 0; i < program->num_inputs; ++i) {
    memcpy((void*)(uintptr_t)inputs[i].data, source, program->input_bytes[i]);
    source += program->input_bytes[i];
  }
  const int result = arrays->call != NULL
                         ? cyxla->call(arrays->call)
                         : cyxla->execute(program->spec, inputs, outputs,
                                          worker->way != 'i' && worker->way != 'c');
  if (result != 0) {
    return -1;
  }
  int differs = 0;
  const char* wanted = program->outputs[set];
  for (size_t i = 0; i < program->num_outputs; ++i) {
    differs |= memcmp(outputs[i], wanted, program->output_bytes[i]) != 0;
    wanted += program->output_bytes[i];
  }
  source = program->inputs[set];
  for (size_t i = 0; worker->way != 'i' && i < program->num_inputs; ++i) {
    differs |= memcmp(inputs[i].data, source, program->input_bytes[i]) != 0;
    source += program->input_bytes[i];
  }
  return differs;
}

static void* run_worker(void* argument) {
  Worker* worker = argument;
  Team* team = (Team*)worker->team;
  Arrays* arrays = calloc(team->num_programs, sizeof *arrays); /* the stack may be small */
  for (size_t p = 0; p < team->num_programs; ++p) {
    if (make_arrays(&arrays[p], &team->programs[p], worker->way) != 0) {
      worker->failures = team->max_failures;
    }
  }
  memset(arrays[0].outputs[0][0], kUnwritten, team->programs[0].output_bytes[0]);
  __atomic_store_n(&worker->first_output, arrays[0].outputs[0][0], __ATOMIC_RELEASE);
  if (team->together) {
    pthread_barrier_wait(&team->start);
  }
  for (int64_t c = 0; c < team->num_calls && worker->failures < team->max_failures; ++c) {
    const size_t p = (size_t)c % team->num_programs;
    if (c == team->warm_up && count_begin != NULL) {
      count_begin();
    }
    const int result = call_and_check(worker, &team->programs[p], &arrays[p], c);
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
  for (size_t p = 0; p < team->num_programs; ++p) {
    cyxla->discard(arrays[p].call);
    cyxla->free_aligned(arrays[p].memory);
    if (team->retains) {
      cyxla->release(team->programs[p].spec);
    }
  }
  free(arrays);
  return NULL;
}

static int start_workers(Team* team, const char* ways, size_t stack_bytes) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack_bytes > 0 && pthread_attr_setstacksize(&attributes, stack_bytes) != 0) {
    PyErr_SetString(PyExc_ValueError, "no stack of that size");
    return -1;
  }
  pthread_barrier_init(&team->start, NULL, (unsigned)team->num_workers);
  for (size_t t = 0; t < team->num_workers; ++t) {
    team->workers[t] = (Worker){.team = team, .index = t, .way = ways[t]};
    for (size_t p = 0; team->retains && p < team->num_programs; ++p) {
      cyxla->retain(team->programs[p].spec);
    }
    if (pthread_create(&team->workers[t].thread, &attributes, run_worker, &team->workers[t]) != 0) {
      Py_FatalError("cannot create a thread");
    }
  }
  pthread_attr_destroy(&attributes);
  return 0;
}

static void destroy_team(Team* team) {
  for (size_t p = 0; p < team->num_programs; ++p) {
    Py_XDECREF(team->programs[p].keep[0]);
    Py_XDECREF(team->programs[p].keep[1]);
  }
  free(team->workers);
  free(team);
}

/* Reads the addresses of a tuple of bytes objects that all have one size. */
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

static int parse_program(PyObject* item, Program* program) {
  PyObject *executable = NULL, *sets[2] = {NULL, NULL};
  if (!PyArg_ParseTuple(item, "OO!O!", &executable, &PyTuple_Type, &sets[0], &PyTuple_Type,
                        &sets[1])) {
    return -1;
  }
  const cyxla_program_spec* spec = cyxla->program_spec(executable);
  if (spec == NULL) {
    return -1;
  }
  program->spec = spec;
  program->num_sets = (size_t)PyTuple_GET_SIZE(sets[0]);
  if (program->num_sets > kMaxSets || spec->num_inputs > kMaxArrays ||
      spec->num_outputs > kMaxArrays) {
    PyErr_SetString(PyExc_ValueError, "too many sets or arrays");
    return -1;
  }
  program->num_inputs = spec->num_inputs;
  program->num_outputs = spec->num_outputs;
  memcpy(program->input_bytes, spec->input_bytes, spec->num_inputs * sizeof(size_t));
  memcpy(program->output_bytes, spec->output_bytes, spec->num_outputs * sizeof(size_t));
  program->keep[0] = Py_NewRef(sets[0]);
  program->keep[1] = Py_NewRef(sets[1]);
  if (parse_sets(sets[0], sum(spec->input_bytes, spec->num_inputs), program->inputs,
                 program->num_sets) < 0) {
    return -1;
  }
  return parse_sets(sets[1], sum(spec->output_bytes, spec->num_outputs), program->outputs,
                    program->num_sets);
}

/* start(programs, ways, num_calls, *, warm_up=0, stack_bytes=0, retains=True, together=False,
 *       max_failures=1) -> address of the team, for is_inside() and join().
 *
 * `programs` is a tuple of (executable, inputs, outputs). There is one thread for each letter of
 * `ways`; Python goes on meanwhile. With `retains` each thread retains the programs, with
 * `together` all threads make their first call at once. A thread ends after `max_failures`. */
static PyObject* py_start(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"programs", "ways",     "num_calls",    "warm_up", "stack_bytes",
                          "retains",  "together", "max_failures", NULL};
  (void)self;
  PyObject* programs = NULL;
  const char* ways = NULL;
  long long num_calls = 0, warm_up = 0, max_failures = 1;
  Py_ssize_t stack_bytes = 0;
  int retains = 1, together = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!sL|$LnppL", names, &PyTuple_Type, &programs,
                                   &ways, &num_calls, &warm_up, &stack_bytes, &retains, &together,
                                   &max_failures)) {
    return NULL;
  }
  if (PyTuple_GET_SIZE(programs) < 1 || PyTuple_GET_SIZE(programs) > kMaxPrograms) {
    return PyErr_Format(PyExc_ValueError, "one to %d programs", kMaxPrograms);
  }
  Team* team = calloc(1, sizeof *team);
  team->num_programs = (size_t)PyTuple_GET_SIZE(programs);
  team->num_calls = num_calls;
  team->warm_up = warm_up;
  team->max_failures = max_failures;
  team->retains = retains;
  team->together = together;
  team->num_workers = strlen(ways);
  team->workers = calloc(team->num_workers, sizeof *team->workers);
  int result = 0;
  for (size_t p = 0; result == 0 && p < team->num_programs; ++p) {
    result = parse_program(PyTuple_GET_ITEM(programs, (Py_ssize_t)p), &team->programs[p]);
  }
  if (result < 0 || start_workers(team, ways, (size_t)stack_bytes) < 0) {
    destroy_team(team);
    return NULL;
  }
  return PyLong_FromVoidPtr(team);
}

/* Whether every thread has written the last byte of the first output of its first call. */
static PyObject* py_is_inside(PyObject* self, PyObject* address) {
  (void)self;
  const Team* team = PyLong_AsVoidPtr(address);
  int all = team != NULL;
  for (size_t t = 0; all && t < team->num_workers; ++t) {
    const volatile unsigned char* output =
        __atomic_load_n(&team->workers[t].first_output, __ATOMIC_ACQUIRE);
    all = output != NULL && output[team->programs[0].output_bytes[0] - 1] != kUnwritten;
  }
  return PyBool_FromLong(all);
}

/* join(team, hold_gil=False, beats=0) -> (failures, mismatches, message, allocations, locks,
 * end_ns, beaten). `beats` is the address of an int64 that a Python thread increments; `beaten` is
 * how often it did while this function waited. */
static PyObject* py_join(PyObject* self, PyObject* args, PyObject* kwargs) {
  (void)self;
  static char* names[] = {"team", "hold_gil", "beats", NULL};
  PyObject *address = NULL, *beats_address = NULL;
  int hold_gil = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|pO!", names, &PyLong_Type, &address, &hold_gil,
                                   &PyLong_Type, &beats_address)) {
    return NULL;
  }
  Team* team = PyLong_AsVoidPtr(address);
  if (team == NULL) {
    return NULL;
  }
  const int64_t none = 0;
  const volatile int64_t* beats = beats_address == NULL ? &none : PyLong_AsVoidPtr(beats_address);
  const int64_t beats_before = *beats;
  PyThreadState* state = hold_gil ? NULL : PyEval_SaveThread();
  Worker total = {.failures = 0};
  for (size_t t = 0; t < team->num_workers; ++t) {
    const Worker* worker = &team->workers[t];
    pthread_join(worker->thread, NULL);
    total.failures += worker->failures;
    total.mismatches += worker->mismatches;
    total.allocations += worker->allocations;
    total.locks += worker->locks;
    total.end_ns = worker->end_ns > total.end_ns ? worker->end_ns : total.end_ns;
    if (worker->failures > 0) {
      memcpy(total.message, worker->message, kMessageSize);
    }
  }
  const int64_t beaten = *beats - beats_before;
  if (state != NULL) {
    PyEval_RestoreThread(state);
  }
  pthread_barrier_destroy(&team->start);
  destroy_team(team);
  return Py_BuildValue("(LLsLLLL)", (long long)total.failures, (long long)total.mismatches,
                       total.message, (long long)total.allocations, (long long)total.locks,
                       (long long)total.end_ns, (long long)beaten);
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
    .m_name = "c_threads",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_c_threads(void) {
  void* begin = dlsym(RTLD_DEFAULT, "count_begin");
  void* end = dlsym(RTLD_DEFAULT, "count_end");
  memcpy(&count_begin, &begin, sizeof begin);
  memcpy(&count_end, &end, sizeof end);
  cyxla = cyxla_import();
  return cyxla == NULL ? NULL : PyModule_Create(&definition);
}

// SPDX-License-Identifier: Apache-2.0
/* The functions of cyxla's C table for tests in Python; addresses are integers, 0 is NULL.
 *
 * Functions that execute return (failures, message): how many calls returned -1, and the message of
 * last_error() on their thread.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cyxla/cyxla_import.h>
#include <pthread.h>
#include <stdlib.h>

enum { kMessageSize = 1024, kMaxArrays = 64 };

static const cyxla_api* cyxla;

/* One execution, of a spec or of a prepared call. */
typedef struct Job {
  const cyxla_program_spec* spec;
  const cyxla_input* inputs;
  void* const* outputs;
  int zero_copy;
  cyxla_call* call;
  Py_ssize_t repeat;
  Py_ssize_t failures;
  char message[kMessageSize];
} Job;

/* The inputs and outputs that Python passed. */
typedef struct Arrays {
  cyxla_input inputs[kMaxArrays];
  void* outputs[kMaxArrays];
  const cyxla_input* inputs_or_null;
  void* const* outputs_or_null;
} Arrays;

static void* run_job(void* argument) {
  Job* job = argument;
  for (Py_ssize_t i = 0; i < job->repeat; ++i) {
    const int result = job->call != NULL
                           ? cyxla->call(job->call)
                           : cyxla->execute(job->spec, job->inputs, job->outputs, job->zero_copy);
    if (result != 0) {
      ++job->failures;
    }
  }
  if (job->failures > 0) {
    cyxla->last_error(job->message, sizeof job->message);
  }
  return NULL;
}

/* Runs the job on a thread that Python does not know, while this one keeps the GIL. */
static int run_job_on_thread(Job* job) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_job, job) != 0 || pthread_join(thread, NULL) != 0) {
    PyErr_SetString(PyExc_OSError, "cannot run a thread");
    return -1;
  }
  return 0;
}

static PyObject* finish_job(Job* job, int on_thread, int hold_gil) {
  if (on_thread) {
    if (run_job_on_thread(job) < 0) {
      return NULL;
    }
  } else if (hold_gil) {
    run_job(job);
  } else {
    Py_BEGIN_ALLOW_THREADS;
    run_job(job);
    Py_END_ALLOW_THREADS;
  }
  return Py_BuildValue("(ns)", job->failures, job->message);
}

static void* to_address(PyObject* number) { return PyLong_AsVoidPtr(number); }

static PyObject* from_address(const void* address) {
  return PyLong_FromVoidPtr((void*)(uintptr_t)address);
}

/* A spec's address, or an Executable. */
static int to_spec(PyObject* object, void* result) {
  const cyxla_program_spec* spec =
      PyLong_Check(object) ? to_address(object) : cyxla->program_spec(object);
  memcpy(result, &spec, sizeof spec);
  return !PyErr_Occurred();
}

static int parse_inputs(PyObject* sequence, Arrays* arrays) {
  const Py_ssize_t count = PySequence_Size(sequence);
  if (count < 0 || count > kMaxArrays) {
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_GetItem(sequence, i);
    PyObject* address = NULL;
    int element_type = 0;
    Py_ssize_t num_elements = 0;
    const int ok =
        item != NULL && PyArg_ParseTuple(item, "Oin", &address, &element_type, &num_elements);
    if (ok) {
      arrays->inputs[i].data = to_address(address);
      arrays->inputs[i].element_type = element_type;
      arrays->inputs[i].num_elements = (size_t)num_elements;
    }
    Py_XDECREF(item);
    if (!ok || PyErr_Occurred()) {
      return -1;
    }
  }
  arrays->inputs_or_null = arrays->inputs;
  return 0;
}

static int parse_outputs(PyObject* sequence, Arrays* arrays) {
  const Py_ssize_t count = PySequence_Size(sequence);
  if (count < 0 || count > kMaxArrays) {
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* address = PySequence_GetItem(sequence, i);
    arrays->outputs[i] = address == NULL ? NULL : to_address(address);
    Py_XDECREF(address);
    if (PyErr_Occurred()) {
      return -1;
    }
  }
  arrays->outputs_or_null = arrays->outputs;
  return 0;
}

/* Reads (spec, inputs, outputs, zero_copy, repeat=1, on_thread=False, hold_gil=False); None stands
 * for a NULL list. */
static int parse_job(PyObject* args, PyObject* kwargs, Job* job, Arrays* arrays, int* on_thread,
                     int* hold_gil) {
  static char* names[] = {"spec",   "inputs",    "outputs",  "zero_copy",
                          "repeat", "on_thread", "hold_gil", NULL};
  PyObject *inputs = NULL, *outputs = NULL;
  memset(job, 0, sizeof *job);
  memset(arrays, 0, sizeof *arrays);
  job->repeat = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&OOp|npp", names, to_spec, &job->spec, &inputs,
                                   &outputs, &job->zero_copy, &job->repeat, on_thread, hold_gil) ||
      (inputs != Py_None && parse_inputs(inputs, arrays) < 0) ||
      (outputs != Py_None && parse_outputs(outputs, arrays) < 0)) {
    if (!PyErr_Occurred()) {
      PyErr_SetString(PyExc_ValueError, "inputs and outputs are sequences of at most 64 items");
    }
    return -1;
  }
  job->inputs = arrays->inputs_or_null;
  job->outputs = arrays->outputs_or_null;
  return 0;
}

static PyObject* py_execute(PyObject* self, PyObject* args, PyObject* kwargs) {
  (void)self;
  Job job;
  Arrays arrays;
  int on_thread = 0, hold_gil = 0;
  if (parse_job(args, kwargs, &job, &arrays, &on_thread, &hold_gil) < 0) {
    return NULL;
  }
  return finish_job(&job, on_thread, hold_gil);
}

static PyObject* py_prepare(PyObject* self, PyObject* args, PyObject* kwargs) {
  (void)self;
  Job job;
  Arrays arrays;
  int on_thread = 0, hold_gil = 0;
  if (parse_job(args, kwargs, &job, &arrays, &on_thread, &hold_gil) < 0) {
    return NULL;
  }
  return from_address(cyxla->prepare(job.spec, job.inputs, job.outputs, job.zero_copy));
}

static PyObject* py_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  (void)self;
  static char* names[] = {"call", "repeat", "on_thread", NULL};
  PyObject* call = NULL;
  int on_thread = 0;
  Job job;
  memset(&job, 0, sizeof job);
  job.repeat = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|np", names, &PyLong_Type, &call, &job.repeat,
                                   &on_thread)) {
    return NULL;
  }
  job.call = to_address(call);
  return finish_job(&job, on_thread, 0);
}

static PyObject* py_call_null(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  return PyLong_FromLong(cyxla->call(NULL));
}

/* rebind(call, index, address) -> (result, message) */
static PyObject* py_rebind(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *call = NULL, *address = NULL;
  Py_ssize_t index = 0;
  char message[kMessageSize] = "";
  if (!PyArg_ParseTuple(args, "O!nO!", &PyLong_Type, &call, &index, &PyLong_Type, &address)) {
    return NULL;
  }
  const int result = cyxla->rebind(to_address(call), (size_t)index, to_address(address));
  if (result != 0) {
    cyxla->last_error(message, sizeof message);
  }
  return Py_BuildValue("(is)", result, message);
}

static PyObject* py_last_error_code(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  return PyLong_FromLong(cyxla->last_error_code());
}

static PyObject* py_clear_error(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  cyxla->clear_error();
  Py_RETURN_NONE;
}

static PyObject* py_discard(PyObject* self, PyObject* call) {
  (void)self;
  cyxla->discard(to_address(call));
  Py_RETURN_NONE;
}

static PyObject* py_program_spec(PyObject* self, PyObject* executable) {
  (void)self;
  const cyxla_program_spec* spec = cyxla->program_spec(executable);
  return spec == NULL ? NULL : from_address(spec);
}

static PyObject* py_program_spec_of_null(PyObject* self, PyObject* none) {
  (void)none;
  return py_program_spec(self, NULL);
}

static PyObject* py_retain(PyObject* self, PyObject* spec) {
  (void)self;
  cyxla->retain(to_address(spec));
  Py_RETURN_NONE;
}

static PyObject* py_release(PyObject* self, PyObject* spec) {
  (void)self;
  cyxla->release(to_address(spec));
  Py_RETURN_NONE;
}

static PyObject* sizes(const size_t* values, size_t count) {
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list != NULL && i < count; ++i) {
    PyList_SET_ITEM(list, (Py_ssize_t)i, PyLong_FromSize_t(values[i]));
  }
  return list;
}

static PyObject* types(const int32_t* values, size_t count) {
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list != NULL && i < count; ++i) {
    PyList_SET_ITEM(list, (Py_ssize_t)i, PyLong_FromLong(values[i]));
  }
  return list;
}

static PyObject* shapes(const int64_t* const* rows, const size_t* ranks, size_t count) {
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list != NULL && i < count; ++i) {
    PyObject* shape = PyList_New((Py_ssize_t)ranks[i]);
    for (size_t k = 0; shape != NULL && k < ranks[i]; ++k) {
      PyList_SET_ITEM(shape, (Py_ssize_t)k, PyLong_FromLongLong(rows[i][k]));
    }
    PyList_SET_ITEM(list, (Py_ssize_t)i, shape);
  }
  return list;
}

static PyObject* texts(const char* const* values, size_t count) {
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list != NULL && i < count; ++i) {
    PyList_SET_ITEM(list, (Py_ssize_t)i, PyUnicode_FromString(values[i]));
  }
  return list;
}

static PyObject* py_describe(PyObject* self, PyObject* address) {
  (void)self;
  const cyxla_program_spec* spec = to_address(address);
  const size_t num_inputs = spec->num_inputs;
  const size_t num_outputs = spec->num_outputs;
  PyObject* known = spec->struct_size == sizeof(cyxla_program_spec) ? Py_True : Py_False;
  return Py_BuildValue(
      "{s:O,s:I,s:i,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:s}",                        //
      "size_is_known", known, "flags", (unsigned)spec->flags, "route", (int)spec->route,  //
      "input_types", types(spec->input_types, num_inputs),                                //
      "input_elements", sizes(spec->input_elements, num_inputs),                          //
      "input_bytes", sizes(spec->input_bytes, num_inputs),                                //
      "output_types", types(spec->output_types, num_outputs),                             //
      "output_elements", sizes(spec->output_elements, num_outputs),                       //
      "output_bytes", sizes(spec->output_bytes, num_outputs),                             //
      "input_dimensions", shapes(spec->input_dimensions, spec->input_ranks, num_inputs),  //
      "output_dimensions", shapes(spec->output_dimensions, spec->output_ranks, num_outputs),
      "input_names", texts(spec->input_names, num_inputs),  //
      "output_names", texts(spec->output_names, num_outputs), "name", spec->name);
}

/* last_error(size) -> (length of the whole message, the bytes written). None passes a NULL buffer.
 */
static PyObject* py_last_error(PyObject* self, PyObject* size_or_none) {
  (void)self;
  char buffer[kMessageSize];
  if (size_or_none == Py_None) {
    return Py_BuildValue("(ny#)", (Py_ssize_t)cyxla->last_error(NULL, kMessageSize), buffer,
                         (Py_ssize_t)0);
  }
  const size_t size = PyLong_AsSize_t(size_or_none);
  if (size > sizeof buffer) {
    PyErr_SetString(PyExc_ValueError, "at most 1024 bytes");
    return NULL;
  }
  memset(buffer, '#', sizeof buffer);
  const size_t length = cyxla->last_error(buffer, size);
  return Py_BuildValue("(ny#)", (Py_ssize_t)length, buffer, (Py_ssize_t)sizeof buffer);
}

static PyObject* py_aligned_memory(PyObject* self, PyObject* size) {
  (void)self;
  const size_t bytes = PyLong_AsSize_t(size);
  return PyErr_Occurred() ? NULL : from_address(cyxla->aligned_memory(bytes));
}

static PyObject* py_free_aligned(PyObject* self, PyObject* address) {
  (void)self;
  cyxla->free_aligned(to_address(address));
  Py_RETURN_NONE;
}

static PyObject* py_itemsize(PyObject* self, PyObject* element_type) {
  (void)self;
  const long value = PyLong_AsLong(element_type);
  return PyErr_Occurred() ? NULL : PyLong_FromSize_t(cyxla->itemsize((int32_t)value));
}

/* Fetches the table once more: (ABI version, its size, the size of a spec). */
static PyObject* py_import_table(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  const cyxla_api* api = cyxla_import();
  if (api == NULL) {
    return NULL;
  }
  return Py_BuildValue("(inn)", (int)api->abi_version, (Py_ssize_t)api->struct_size,
                       (Py_ssize_t)api->spec_size);
}

#define WITH_KEYWORDS(function) (PyCFunction)(void (*)(void)) function
static PyMethodDef methods[] = {
    {"execute", WITH_KEYWORDS(py_execute), METH_VARARGS | METH_KEYWORDS, NULL},
    {"prepare", WITH_KEYWORDS(py_prepare), METH_VARARGS | METH_KEYWORDS, NULL},
    {"call", WITH_KEYWORDS(py_call), METH_VARARGS | METH_KEYWORDS, NULL},
    {"call_null", py_call_null, METH_NOARGS, NULL},
    {"rebind", py_rebind, METH_VARARGS, NULL},
    {"discard", py_discard, METH_O, NULL},
    {"program_spec", py_program_spec, METH_O, NULL},
    {"program_spec_of_null", py_program_spec_of_null, METH_NOARGS, NULL},
    {"retain", py_retain, METH_O, NULL},
    {"release", py_release, METH_O, NULL},
    {"describe", py_describe, METH_O, NULL},
    {"last_error", py_last_error, METH_O, NULL},
    {"last_error_code", py_last_error_code, METH_NOARGS, NULL},
    {"clear_error", py_clear_error, METH_NOARGS, NULL},
    {"aligned_memory", py_aligned_memory, METH_O, NULL},
    {"free_aligned", py_free_aligned, METH_O, NULL},
    {"itemsize", py_itemsize, METH_O, NULL},
    {"import_table", py_import_table, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "c_table",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_c_table(void) {
  cyxla = cyxla_import();
  return cyxla == NULL ? NULL : PyModule_Create(&definition);
}

// SPDX-License-Identifier: Apache-2.0
/* Executes programs that call Python, float vectors x -> y, with and without the GIL and on threads
 * that Python does not know. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cyxla/cyxla_import.h>
#include <pthread.h>

enum { kMaxThreads = 16, kMessageSize = 1024 };

static const cyxla_api* cyxla;

typedef struct Worker {
  pthread_t thread;
  const cyxla_program_spec* spec;
  cyxla_input inputs[2];
  void* output;
  long repeat;
  long failures;
  char message[kMessageSize];
} Worker;

static void* run(void* argument) {
  Worker* worker = argument;
  for (long i = 0; i < worker->repeat; ++i) {
    if (cyxla->execute(worker->spec, worker->inputs, &worker->output, 1) != 0) {
      ++worker->failures;
      cyxla->last_error(worker->message, sizeof worker->message);
    }
  }
  return NULL;
}

/* execute(executable, inputs' addresses, outputs' addresses by thread, repeat, threads, hold_gil)
 * -> (failures, message). Without threads it executes on this one. */
static PyObject* py_execute(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *executable = NULL, *inputs = NULL, *outputs = NULL;
  long repeat = 1;
  int threads = 0, hold_gil = 0;
  static Worker workers[kMaxThreads];
  if (!PyArg_ParseTuple(args, "OO!O!lip", &executable, &PyTuple_Type, &inputs, &PyTuple_Type,
                        &outputs, &repeat, &threads, &hold_gil)) {
    return NULL;
  }
  const cyxla_program_spec* spec = cyxla->program_spec(executable);
  if (spec == NULL) {
    return NULL;
  }
  const int count = threads > 0 ? threads : 1;
  if (count > kMaxThreads || PyTuple_Size(outputs) < count || PyTuple_Size(inputs) > 2) {
    return PyErr_Format(PyExc_ValueError, "too many threads or arrays");
  }
  for (int t = 0; t < count; ++t) {
    workers[t] = (Worker){.spec = spec, .repeat = repeat};
    for (Py_ssize_t i = 0; i < PyTuple_Size(inputs); ++i) {
      const void* data = PyLong_AsVoidPtr(PyTuple_GetItem(inputs, i));
      workers[t].inputs[i] = (cyxla_input){data, spec->input_types[i], spec->input_elements[i]};
    }
    workers[t].output = PyLong_AsVoidPtr(PyTuple_GetItem(outputs, t));
  }
  if (threads == 0 && hold_gil) {
    run(&workers[0]);
  } else {
    Py_BEGIN_ALLOW_THREADS;
    for (int t = 0; t < threads; ++t) {
      pthread_create(&workers[t].thread, NULL, run, &workers[t]);
    }
    if (threads == 0) {
      run(&workers[0]);
    }
    for (int t = 0; t < threads; ++t) {
      pthread_join(workers[t].thread, NULL);
    }
    Py_END_ALLOW_THREADS;
  }
  long failures = 0;
  const char* message = "";
  for (int t = 0; t < count; ++t) {
    failures += workers[t].failures;
    message = workers[t].failures > 0 ? workers[t].message : message;
  }
  return Py_BuildValue("(ls)", failures, message);
}

/* Refuses what would take the GIL, as a caller that must stay clear of it does. */
static PyObject* py_accepts(PyObject* self, PyObject* executable) {
  (void)self;
  const cyxla_program_spec* spec = cyxla->program_spec(executable);
  return spec == NULL ? NULL : PyBool_FromLong((spec->flags & CYXLA_NEEDS_PYTHON) == 0);
}

static PyMethodDef methods[] = {
    {"execute", py_execute, METH_VARARGS, NULL},
    {"accepts", py_accepts, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "c_callbacks",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_c_callbacks(void) {
  cyxla = cyxla_import();
  return cyxla == NULL ? NULL : PyModule_Create(&definition);
}

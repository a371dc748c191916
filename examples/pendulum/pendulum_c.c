// SPDX-License-Identifier: Apache-2.0
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cyxla/cyxla_import.h>
#include <string.h>

static const cyxla_api* api;

/* Returns 0, or -1 with the reason in this thread's last_error(). */
static int advance(const cyxla_program_spec* spec, double* state, size_t num_states, double step,
                   long num_steps) {
  double rate[2];
  const cyxla_input inputs[1] = {{state, CYXLA_F64, num_states}};
  void* const outputs[1] = {rate};
  for (long i = 0; i < num_steps; ++i) {
    if (api->execute(spec, inputs, outputs, 1) != 0) {
      return -1;
    }
    state[0] += step * rate[0];
    state[1] += step * rate[1];
  }
  return 0;
}

static void integrate_buffer(PyObject* executable, Py_buffer* state, double step, long num_steps) {
  const cyxla_program_spec* spec = api->program_spec(executable);
  if (spec == NULL) {
    return;
  }
  /* The number of inputs, and the outputs, are the caller's to check; execute() checks the
   * types and the numbers of elements of the inputs. */
  if (spec->num_inputs != 1 || spec->num_outputs != 1 || spec->output_types[0] != CYXLA_F64 ||
      spec->output_bytes[0] != 2 * sizeof(double)) {
    PyErr_SetString(PyExc_ValueError, "the program must take a state and return two doubles");
    return;
  }
  char message[1024];
  PyThreadState* thread_state = PyEval_SaveThread();
  const int failed =
      advance(spec, state->buf, (size_t)state->len / sizeof(double), step, num_steps);
  if (failed) {
    api->last_error(message, sizeof(message));
  }
  PyEval_RestoreThread(thread_state);
  if (failed) {
    PyErr_SetString(PyExc_RuntimeError, message);
  }
}

static PyObject* integrate(PyObject* module, PyObject* arguments) {
  PyObject* executable;
  PyObject* array;
  Py_buffer state;
  double step;
  long num_steps;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OOdl", &executable, &array, &step, &num_steps) ||
      PyObject_GetBuffer(array, &state, PyBUF_CONTIG | PyBUF_FORMAT) != 0) {
    return NULL;
  }
  if (strcmp(state.format, "d") == 0) {
    integrate_buffer(executable, &state, step, num_steps);
  } else {
    PyErr_SetString(PyExc_TypeError, "the state must be an array of doubles");
  }
  PyBuffer_Release(&state);
  return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"integrate", integrate, METH_VARARGS,
     "integrate(executable, state, step, num_steps)\n\n"
     "Advance `state`, two doubles, in place by Euler's method, without the GIL."},
    {0},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "pendulum_c", NULL, -1, methods};

PyMODINIT_FUNC PyInit_pendulum_c(void) {
  api = cyxla_import();
  return api == NULL ? NULL : PyModule_Create(&definition);
}

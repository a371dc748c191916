// SPDX-License-Identifier: Apache-2.0
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cyxla/cyxla_import.h>
#include <cyxla/cyxla.hpp>

#include <array>
#include <exception>
#include <span>
#include <string>
#include <string_view>

static const cyxla_api* api;

static void advance(const cyxla::Program& program, std::span<double> state, double step,
                    long num_steps) {
  std::array<double, 2> rate = {};
  cyxla::Call call = program.prepare({cyxla::input(state)}, {cyxla::output(rate)});
  for (long i = 0; i < num_steps; ++i) {
    call();
    state[0] += step * rate[0];
    state[1] += step * rate[1];
  }
}

static PyObject* integrate(PyObject*, PyObject* arguments) {
  PyObject* executable;
  PyObject* array;
  Py_buffer state;
  double step;
  long num_steps;
  if (!PyArg_ParseTuple(arguments, "OOdl", &executable, &array, &step, &num_steps) ||
      PyObject_GetBuffer(array, &state, PyBUF_CONTIG | PyBUF_FORMAT) != 0) {
    return nullptr;
  }
  if (std::string_view(state.format) != "d") {
    PyErr_SetString(PyExc_TypeError, "the state must be an array of doubles");
  } else if (const cyxla_program_spec* spec = api->program_spec(executable)) {
    PyThreadState* thread_state = PyEval_SaveThread();
    std::string failure;
    try {
      const std::span values(static_cast<double*>(state.buf), state.len / sizeof(double));
      advance(cyxla::Program(*api, *spec), values, step, num_steps);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    PyEval_RestoreThread(thread_state);
    if (!failure.empty()) {
      PyErr_SetString(PyExc_RuntimeError, failure.c_str());
    }
  }
  PyBuffer_Release(&state);
  return PyErr_Occurred() ? nullptr : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"integrate", integrate, METH_VARARGS,
     "integrate(executable, state, step, num_steps)\n\n"
     "Advance `state`, two doubles, in place by Euler's method, without the GIL."},
    {},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "pendulum_cpp", nullptr, -1, methods};

PyMODINIT_FUNC PyInit_pendulum_cpp() {
  api = cyxla_import();
  return api == nullptr ? nullptr : PyModule_Create(&definition);
}

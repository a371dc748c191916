// SPDX-License-Identifier: Apache-2.0
/* The floating-point state of the calling thread around an execution, on x86-64. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cyxla/cyxla_import.h>
#include <fenv.h>
#include <stdint.h>
#include <xmmintrin.h>

static const cyxla_api* cyxla;

/* MXCSR, and the control word and the exception flags of the x87 unit. */
typedef struct {
  unsigned mxcsr, x87_control, x87_flags;
} state;

static state current(void) {
  uint16_t control, status;
  __asm__ volatile("fnstcw %0\n\tfnstsw %1" : "=m"(control), "=m"(status));
  return (state){_mm_getcsr(), control, status & 0x3f};
}

/* Clears the x87 flags first: the next x87 instruction would trap on an unmasked one. */
static void set_state(unsigned mxcsr, unsigned x87_control) {
  const uint16_t control = (uint16_t)x87_control;
  __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(control));
  _mm_setcsr(mxcsr);
}

/* execute(executable, input address, output addresses, zero_copy, mxcsr, x87_control) -> (result,
 * mxcsr, x87_control, x87_flags): the state applies to the call, and is returned as it is after
 * the call. An input address of 0 makes the call fail. */
static PyObject* py_execute(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* executable = NULL;
  PyObject* input_address = NULL;
  PyObject* output_addresses = NULL;
  int zero_copy = 0;
  unsigned mxcsr = 0, x87_control = 0;
  void* outputs[8];
  if (!PyArg_ParseTuple(args, "OO!O!pII", &executable, &PyLong_Type, &input_address, &PyTuple_Type,
                        &output_addresses, &zero_copy, &mxcsr, &x87_control)) {
    return NULL;
  }
  const cyxla_program_spec* spec = cyxla->program_spec(executable);
  if (spec == NULL || spec->num_inputs != 1 || spec->num_outputs > 8 ||
      (size_t)PyTuple_GET_SIZE(output_addresses) != spec->num_outputs) {
    return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "not one input, or outputs");
  }
  for (size_t i = 0; i < spec->num_outputs; ++i) {
    outputs[i] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(output_addresses, (Py_ssize_t)i));
  }
  const cyxla_input input = {PyLong_AsVoidPtr(input_address), spec->input_types[0],
                             spec->input_elements[0]};
  if (PyErr_Occurred()) {
    return NULL;
  }
  fenv_t own;
  fegetenv(&own);
  set_state(mxcsr, x87_control);
  const int result = cyxla->execute(spec, &input, outputs, zero_copy);
  const state after = current();
  fesetenv(&own);
  return Py_BuildValue("(iIII)", result, after.mxcsr, after.x87_control, after.x87_flags);
}

/* call(function, mxcsr, x87_control) -> (the function's result, mxcsr, x87_control,
 * x87_flags): as execute(), around a Python function. */
static PyObject* py_call(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* function = NULL;
  unsigned mxcsr = 0, x87_control = 0;
  if (!PyArg_ParseTuple(args, "OII", &function, &mxcsr, &x87_control)) {
    return NULL;
  }
  fenv_t own;
  fegetenv(&own);
  set_state(mxcsr, x87_control);
  PyObject* result = PyObject_CallNoArgs(function);
  const state after = current();
  fesetenv(&own);
  return result == NULL
             ? NULL
             : Py_BuildValue("(NIII)", result, after.mxcsr, after.x87_control, after.x87_flags);
}

static PyMethodDef methods[] = {
    {"execute", py_execute, METH_VARARGS, NULL},
    {"call", py_call, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "floating_point",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_floating_point(void) {
  cyxla = cyxla_import();
  return cyxla == NULL ? NULL : PyModule_Create(&definition);
}

// SPDX-License-Identifier: Apache-2.0
/* The floating-point state of the calling thread around an execution, on x86-64. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cyxla/cyxla_import.h>
#include <fenv.h>
#include <xmmintrin.h>

static const cyxla_api* cyxla;

static unsigned short x87_control(void) {
  unsigned short word;
  __asm__ volatile("fnstcw %0" : "=m"(word));
  return word;
}

/* execute(executable, input address, output addresses, state) -> (result, the state afterwards,
 * whether the x87 unit's is as before). `state` is the thread's MXCSR during the call alone; the
 * x87 unit rounds in the same way then. An input address of 0 makes the call fail. */
static PyObject* py_execute(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* executable = NULL;
  PyObject* input_address = NULL;
  PyObject* output_addresses = NULL;
  unsigned state = 0;
  void* outputs[8];
  if (!PyArg_ParseTuple(args, "OO!O!I", &executable, &PyLong_Type, &input_address, &PyTuple_Type,
                        &output_addresses, &state)) {
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
  const unsigned own = _mm_getcsr();
  const int own_rounding = fegetround();
  fesetround((int)(state & 0x6000U) >> 3);
  const unsigned short x87_before = x87_control();
  _mm_setcsr(state);
  const int result = cyxla->execute(spec, &input, outputs, 1);
  const unsigned after = _mm_getcsr();
  const int is_x87_same = x87_before == x87_control();
  fesetround(own_rounding);
  _mm_setcsr(own);
  return Py_BuildValue("(iIO)", result, after, is_x87_same ? Py_True : Py_False);
}

static PyMethodDef methods[] = {
    {"execute", py_execute, METH_VARARGS, NULL},
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

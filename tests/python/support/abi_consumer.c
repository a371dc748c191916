// SPDX-License-Identifier: Apache-2.0
/* A module that a test compiles against headers of its own, under a name of its own: MODULE_INIT is
 * its init function. It uses the members alone that every cyxla of ABI version 2 has. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cyxla/cyxla_import.h>

static const cyxla_api* cyxla;

/* evaluate(executable, x): a program double -> double on one number. */
static PyObject* evaluate(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* executable = NULL;
  double x = 0;
  double result = 0;
  if (!PyArg_ParseTuple(args, "Od", &executable, &x)) {
    return NULL;
  }
  const cyxla_program_spec* spec = cyxla->program_spec(executable);
  if (spec == NULL) {
    return NULL;
  }
  const cyxla_input inputs[] = {{&x, CYXLA_F64, 1}};
  void* const outputs[] = {&result};
  if (cyxla->execute(spec, inputs, outputs, 1) != 0) {
    PyErr_SetString(PyExc_RuntimeError, "the execution failed");
    return NULL;
  }
  return PyFloat_FromDouble(result);
}

/* The sizes that the module was compiled with: (cyxla_api, cyxla_program_spec). */
static PyObject* sizes(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  return Py_BuildValue("(nn)", (Py_ssize_t)sizeof(cyxla_api),
                       (Py_ssize_t)sizeof(cyxla_program_spec));
}

static PyMethodDef methods[] = {
    {"evaluate", evaluate, METH_VARARGS, NULL},
    {"sizes", sizes, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "abi_consumer",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC MODULE_INIT(void);
PyMODINIT_FUNC MODULE_INIT(void) {
  cyxla = cyxla_import();
  return cyxla == NULL ? NULL : PyModule_Create(&definition);
}

// SPDX-License-Identifier: Apache-2.0
/* Fetches cyxla's function table in a CPython extension module, from C or C++:
 *
 *   #include <Python.h>
 *   #include <cyxla/cyxla_import.h>
 *   static const cyxla_api* cyxla;
 *   ... in the module's init function:  if ((cyxla = cyxla_import()) == NULL) return NULL;
 */
#ifndef CYXLA_CYXLA_IMPORT_H_
#define CYXLA_CYXLA_IMPORT_H_

#include <Python.h>

#include "cyxla.h"

/* The function table, valid for the life of the process. Needs the GIL. NULL with ImportError set
 * when cyxla is not installed, has another ABI version than this module was compiled for, or has
 * shorter structs, which older versions of cyxla have. */
static inline const cyxla_api* cyxla_import(void) {
  const cyxla_api* api;
  PyObject* module =
      PyImport_ImportModule("cyxla._runtime"); /* `import cyxla` alone does not load it */
  if (module == NULL) {
    return NULL;
  }
  Py_DECREF(module); /* sys.modules keeps it */
  api = (const cyxla_api*)PyCapsule_Import(CYXLA_CAPSULE_NAME, 0);
  if (api == NULL) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
      PyErr_SetString(PyExc_ImportError,
                      "cyxla._runtime has no C function table: the installed cyxla is damaged or "
                      "too old; reinstall "
                      "it and rebuild this module");
    }
    return NULL;
  }
  /* Tables of all versions begin with struct_size and abi_version; the rest may differ. */
  if (api->abi_version != CYXLA_ABI_VERSION) {
    PyErr_Format(PyExc_ImportError,
                 "this module was compiled for cyxla ABI version %d, the installed cyxla has ABI "
                 "version %d; rebuild the module against the installed cyxla",
                 (int)CYXLA_ABI_VERSION, (int)api->abi_version);
    return NULL;
  }
  if (api->struct_size < sizeof(cyxla_api) || api->spec_size < sizeof(cyxla_program_spec)) {
    PyErr_Format(PyExc_ImportError,
                 "this module was compiled for a newer cyxla of ABI version %d (cyxla_api of %zu "
                 "bytes, cyxla_program_spec of %zu), the installed cyxla has %zu and %zu bytes; "
                 "upgrade cyxla, or rebuild the module against the installed cyxla",
                 (int)CYXLA_ABI_VERSION, sizeof(cyxla_api), sizeof(cyxla_program_spec),
                 api->struct_size, (size_t)api->spec_size);
    return NULL;
  }
  return api;
}

#endif /* CYXLA_CYXLA_IMPORT_H_ */

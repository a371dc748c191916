// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Python.h>

#include <utility>

#include "elements.hpp"

namespace cyxla::glue {

// Returns jaxlib's array class, null before jaxlib is imported; borrowed from jaxlib.
inline PyTypeObject* jax_array_type() noexcept {
  static PyTypeObject* type = nullptr;
  if (type == nullptr) {
    PyObject* const name = PyUnicode_FromString("jaxlib._jax");
    PyObject* const module = name == nullptr ? nullptr : PyImport_GetModule(name);
    PyObject* const found =
        module == nullptr ? nullptr : PyObject_GetAttrString(module, "ArrayImpl");
    Py_XDECREF(name);
    Py_XDECREF(module);
    PyErr_Clear();
    if (found != nullptr && PyType_Check(found)) {
      type = reinterpret_cast<PyTypeObject*>(found);
    } else {
      Py_XDECREF(found);
    }
  }
  return type;
}

// Caches the address of a jax.Array's elements if an input gets the same array twice in a row.
// Asking jaxlib takes half a microsecond, and a jax.Array keeps its memory until it is deleted. The
// cache does not own the memory, so the address is valid only until other code runs.
class JaxArrayAddress {
 public:
  JaxArrayAddress() noexcept = default;
  JaxArrayAddress(JaxArrayAddress&& other) noexcept
      : candidate_(other.candidate_),
        reference_(std::exchange(other.reference_, nullptr)),
        data_(other.data_),
        element_(other.element_),
        itemsize_(other.itemsize_) {}
  JaxArrayAddress& operator=(JaxArrayAddress&&) = delete;
  ~JaxArrayAddress() { Py_XDECREF(reference_); }

  // Null unless `array` is the cached one and is not deleted.
  const void* find(PyObject* array) const noexcept {
    if (candidate_ != array || reference_ == nullptr || !refers_to(array)) {
      return nullptr;
    }
    static PyObject* const name = PyUnicode_InternFromString("is_deleted");
    PyObject* const is_deleted = PyObject_VectorcallMethod(name, &array, 1, nullptr);
    PyErr_Clear();
    Py_XDECREF(is_deleted);
    return is_deleted == Py_False ? data_ : nullptr;
  }

  // Requires dense row-major elements.
  void remember(PyObject* array, const void* data, Element element, Py_ssize_t itemsize) noexcept {
    Py_CLEAR(reference_);
    if (std::exchange(candidate_, array) == array && Py_TYPE(array) == jax_array_type()) {
      reference_ = PyWeakref_NewRef(array, nullptr);
      PyErr_Clear();
      data_ = data;
      element_ = element;
      itemsize_ = itemsize;
    }
  }

  Element element() const noexcept { return element_; }
  Py_ssize_t itemsize() const noexcept { return itemsize_; }

 private:
  bool refers_to(PyObject* array) const noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* object = nullptr;
    PyWeakref_GetRef(reference_, &object);
    Py_XDECREF(object);
    return object == array;
#else
    return PyWeakref_GET_OBJECT(reference_) == array;
#endif
  }

  const void* candidate_ = nullptr;  // only compared: the object may be freed
  PyObject* reference_ = nullptr;
  const void* data_ = nullptr;
  Element element_ = kOther;
  Py_ssize_t itemsize_ = 0;
};

}  // namespace cyxla::glue

// SPDX-License-Identifier: Apache-2.0
// The declared inputs and outputs of a program, and checks of arguments against them.
#pragma once

#include <Python.h>
#include <numpy/arrayobject.h>

#include <cstddef>
#include <vector>

#include "elements.hpp"

namespace cyxla::glue {

// Element type and shape of an input or output.
struct Target {
  PyArray_Descr* dtype;  // borrowed
  Element element;
  std::size_t size_bytes;
  std::vector<npy_intp> dimensions;

  int rank() const noexcept { return static_cast<int>(dimensions.size()); }
  std::size_t itemsize() const noexcept {
    return static_cast<std::size_t>(PyDataType_ELSIZE(dtype));
  }
};

inline Target make_target(PyObject* dtype, std::size_t size_bytes,
                          const std::vector<npy_intp>& dimensions) {
  auto* const descriptor = reinterpret_cast<PyArray_Descr*>(dtype);
  return {descriptor, element_of(descriptor->type_num), size_bytes, dimensions};
}

inline PyTypeObject* memmap_type = nullptr;  // numpy.memmap

inline void set_memmap_type(PyObject* type) {
  Py_INCREF(type);
  memmap_type = reinterpret_cast<PyTypeObject*>(type);
}

// Whether an object is an array that its C structure describes completely; other subclasses of
// ndarray may override its attributes.
inline bool is_plain_array(PyObject* value) noexcept {
  return PyArray_CheckExact(value) || Py_TYPE(value) == memmap_type;
}

// Whether a dtype has the target's elements; NumPy may have several objects for one dtype.
inline bool is_equivalent(PyArray_Descr* dtype, const Target& target) noexcept {
  if (dtype == target.dtype) {
    return true;
  }
  if (PyDataType_ISBYTESWAPPED(dtype)) {
    return false;
  }
  return target.element == kOther ? dtype->type_num == target.dtype->type_num
                                  : element_of(dtype->type_num) == target.element;
}

inline bool has_shape(const Target& target, int rank, const npy_intp* dimensions) noexcept {
  if (rank != target.rank()) {
    return false;
  }
  for (int k = 0; k < rank; ++k) {
    if (dimensions[k] != target.dimensions[static_cast<std::size_t>(k)]) {
      return false;
    }
  }
  return true;
}

// Whether an object is an array that a call can use unchanged.
inline bool fits(const Target& target, PyObject* value) noexcept {
  if (!is_plain_array(value)) {
    return false;
  }
  auto* const array = reinterpret_cast<PyArrayObject*>(value);
  return is_equivalent(PyArray_DESCR(array), target) && PyArray_IS_C_CONTIGUOUS(array) &&
         has_shape(target, PyArray_NDIM(array), PyArray_DIMS(array));
}

// Whether conversion to the target may change numbers: 64-bit numbers to floats of at most 32 bits.
inline bool is_narrowing(Element source, const Target& target) noexcept {
  return (source == kF64 || source == kC128 || source == kS64 || source == kU64) &&
         (target.element == kF32 || target.element == kC64 || target.element == kOther);
}

}  // namespace cyxla::glue

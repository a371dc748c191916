// SPDX-License-Identifier: Apache-2.0
// Converts Python objects to inputs of a program, without running Python code if possible.
#pragma once

#include <Python.h>
#include <numpy/arrayobject.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "arena.hpp"
#include "elements.hpp"
#include "jax_arrays.hpp"
#include "targets.hpp"

namespace cyxla::glue {

// The conversion of one input.
struct Argument {
  const Target& target;
  Arena& arena;
  JaxArrayAddress* known = nullptr;  // the input's remembered address; null if it must not be used
  bool is_known = false;             // whether the result is the remembered address
  // The element type of a converted array or NumPy scalar, kOther for Python numbers.
  Element source = kOther;
  // Whether other code may have run, so that array addresses must be looked up again.
  bool ran_code = false;

  // Each returns the address of the converted elements, null if cyxla.dtypes has to convert.
  const void* from_array(PyArrayObject* array) noexcept;
  const void* from_numpy_scalar(PyObject* value) noexcept;
  const void* from_sequence(PyObject* value) noexcept;
  const void* from_buffer(PyObject* value) noexcept;
  const void* from_known(const void* data) noexcept;
  const void* from_number(Element type, const void* value) noexcept;
  const void* from_int(PyObject* value) noexcept;
  const void* from(PyObject* value) noexcept;
};

inline const void* Argument::from_number(Element type, const void* value) noexcept {
  const Row row = row_for(type, target.element, false);
  if (row == nullptr || target.rank() != 0) {
    return nullptr;
  }
  char* const destination = arena.take(target.size_bytes);
  return destination != nullptr && row(static_cast<const char*>(value), 0, destination, 1)
             ? destination
             : nullptr;
}

// Unlike arrays, Python ints have no dtype and may become unsigned integers.
inline bool read_int(PyObject* value, std::int64_t& number) noexcept {
  int overflow = 0;
  number = PyLong_AsLongLongAndOverflow(value, &overflow);
  return overflow == 0;
}

inline Element element_of_int(std::int64_t number, const Target& target) noexcept {
  return number >= 0 && target.element >= kU8 && target.element <= kU64 ? kU64 : kS64;
}

inline const void* Argument::from_int(PyObject* value) noexcept {
  std::int64_t number = 0;
  return read_int(value, number) ? from_number(element_of_int(number, target), &number) : nullptr;
}

struct ScalarType {
  PyTypeObject* type;
  Element element;
};

inline std::array<ScalarType, 16> scalar_types() {
  return {{{&PyDoubleArrType_Type, kF64},
           {&PyFloatArrType_Type, kF32},
           {&PyBoolArrType_Type, kBool},
           {&PyByteArrType_Type, element_of(NPY_BYTE)},
           {&PyShortArrType_Type, element_of(NPY_SHORT)},
           {&PyIntArrType_Type, element_of(NPY_INT)},
           {&PyLongArrType_Type, element_of(NPY_LONG)},
           {&PyLongLongArrType_Type, element_of(NPY_LONGLONG)},
           {&PyUByteArrType_Type, element_of(NPY_UBYTE)},
           {&PyUShortArrType_Type, element_of(NPY_USHORT)},
           {&PyUIntArrType_Type, element_of(NPY_UINT)},
           {&PyULongArrType_Type, element_of(NPY_ULONG)},
           {&PyULongLongArrType_Type, element_of(NPY_ULONGLONG)},
           {&PyCFloatArrType_Type, kC64},
           {&PyCDoubleArrType_Type, kC128}}};
}

inline const void* Argument::from_numpy_scalar(PyObject* value) noexcept {
  static const std::array<ScalarType, 16> types = scalar_types();
  for (const ScalarType& known : types) {
    if (Py_TYPE(value) == known.type) {
      alignas(16) std::array<char, sizeof(std::complex<double>)> number;
      PyArray_ScalarAsCtype(value, number.data());
      source = known.element;
      return from_number(known.element, number.data());
    }
  }
  return nullptr;
}

inline const void* Argument::from_array(PyArrayObject* array) noexcept {
  PyArray_Descr* const dtype = PyArray_DESCR(array);
  if (!has_shape(target, PyArray_NDIM(array), PyArray_DIMS(array))) {
    return nullptr;
  }
  source = element_of(dtype->type_num);
  Element from = source;
  Element to = target.element;
  const bool is_swapped = PyDataType_ISBYTESWAPPED(dtype);
  if (target.element == kOther && dtype->type_num == target.dtype->type_num) {
    if (is_swapped && dtype->type_num != NPY_HALF) {
      return nullptr;  // ml_dtypes changes the bits of NaNs
    }
    from = to = integer_element(target.itemsize(), false);  // same type: copies the bits
  }
  const Row row = row_for(from, to, is_swapped);
  char* const destination = row == nullptr ? nullptr : arena.take(target.size_bytes);
  return destination != nullptr &&
                 convert_array(row, PyArray_BYTES(array), target.rank(), PyArray_DIMS(array),
                               PyArray_STRIDES(array), destination, target.itemsize())
             ? destination
             : nullptr;
}

// Reads nested lists and tuples of Python floats, ints and bools.
class SequenceReader {
 public:
  SequenceReader(const Target& target, char* destination) noexcept
      : target_(target),
        destination_(destination),
        from_float_(row_for(kF64, target.element, false)),
        from_bool_(row_for(kBool, target.element, false)),
        is_single_(target.element == kF32 || target.element == kC64) {}

  bool read(PyObject* value, int depth) noexcept {
    if (depth == target_.rank()) {
      return read_number(value);
    }
    const bool is_list = PyList_CheckExact(value);
    if ((!is_list && !PyTuple_CheckExact(value)) ||
        Py_SIZE(value) != target_.dimensions[static_cast<std::size_t>(depth)]) {
      return false;
    }
    for (Py_ssize_t i = 0; i < Py_SIZE(value); ++i) {
      if (!read(is_list ? PyList_GET_ITEM(value, i) : PyTuple_GET_ITEM(value, i), depth + 1)) {
        return false;
      }
    }
    return true;
  }

  // NumPy reads a list with any float as doubles, so its ints may be rounded twice.
  bool is_exact() const noexcept { return !(has_float_ && has_long_int_ && is_single_); }

 private:
  bool read_number(PyObject* value) noexcept {
    char* const destination = std::exchange(destination_, destination_ + target_.itemsize());
    if (PyFloat_CheckExact(value) || Py_TYPE(value) == &PyDoubleArrType_Type) {
      const double number = PyFloat_AS_DOUBLE(value);
      has_float_ = true;
      return from_float_ != nullptr &&
             from_float_(reinterpret_cast<const char*>(&number), 0, destination, 1);
    }
    if (PyBool_Check(value)) {
      const Bool truth{static_cast<std::uint8_t>(value == Py_True)};
      return from_bool_(reinterpret_cast<const char*>(&truth), 0, destination, 1);
    }
    std::int64_t number = 0;
    if (!PyLong_CheckExact(value) || !read_int(value, number)) {
      return false;
    }
    constexpr std::int64_t kExactInFloat = 1 << 24;
    has_long_int_ = has_long_int_ || number > kExactInFloat || number < -kExactInFloat;
    const Row row = row_for(element_of_int(number, target_), target_.element, false);
    return row != nullptr && row(reinterpret_cast<const char*>(&number), 0, destination, 1);
  }

  const Target& target_;
  char* destination_;
  Row from_float_;
  Row from_bool_;
  bool is_single_;
  bool has_float_ = false;
  bool has_long_int_ = false;
};

inline const void* Argument::from_sequence(PyObject* value) noexcept {
  if (target.element == kOther || target.size_bytes == 0 || target.rank() == 0) {
    return nullptr;
  }
  char* const destination = arena.take(target.size_bytes);
  if (destination == nullptr) {
    return nullptr;
  }
  SequenceReader reader(target, destination);
  return reader.read(value, 0) && reader.is_exact() ? destination : nullptr;
}

// Returns the element type of a buffer of numbers in native byte order, kOther for other formats.
inline Element element_of_buffer(const Py_buffer& view) noexcept {
  const char* format = view.format == nullptr ? "B" : view.format;
  const auto size_bytes = static_cast<std::size_t>(view.itemsize);
  if (*format == '@' || *format == '=' ||
      *format == (NPY_BYTE_ORDER == NPY_BIG_ENDIAN ? '>' : '<')) {
    ++format;
  }
  const bool is_complex = *format == 'Z';
  format += is_complex ? 1 : 0;
  if (format[0] == '\0' || format[1] != '\0') {
    return kOther;
  }
  const bool is_integer_size =
      size_bytes == 1 || size_bytes == 2 || size_bytes == 4 || size_bytes == 8;
  switch (*format) {
    case '?':
      return !is_complex && size_bytes == 1 ? kBool : kOther;
    case 'f':
      return size_bytes == (is_complex ? 8U : 4U) ? (is_complex ? kC64 : kF32) : kOther;
    case 'd':
      return size_bytes == (is_complex ? 16U : 8U) ? (is_complex ? kC128 : kF64) : kOther;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return !is_complex && is_integer_size ? integer_element(size_bytes, true) : kOther;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return !is_complex && is_integer_size ? integer_element(size_bytes, false) : kOther;
    default:
      return kOther;
  }
}

// `data` are the dense elements of a jax.Array.
inline const void* Argument::from_known(const void* data) noexcept {
  const Element element = known->element();
  if (element == target.element && element != kBool) {
    is_known = true;
    return data;
  }
  const Row row = row_for(element, target.element, false);
  char* const destination = row == nullptr ? nullptr : arena.take(target.size_bytes);
  source = element;
  return destination != nullptr &&
                 row(static_cast<const char*>(data), known->itemsize(), destination,
                     static_cast<npy_intp>(target.size_bytes / target.itemsize()))
             ? destination
             : nullptr;
}

// Also for a jax.Array on the CPU; getting its buffer may release the GIL and wait.
inline const void* Argument::from_buffer(PyObject* value) noexcept {
  if (known != nullptr) {
    if (const void* const data = known->find(value)) {
      return from_known(data);
    }
  }
  ran_code = true;
  Py_buffer view;
  if (PyObject_GetBuffer(value, &view, PyBUF_FULL_RO) != 0) {
    PyErr_Clear();
    return nullptr;
  }
  const Element element = element_of_buffer(view);
  const bool is_readable = element != kOther && view.suboffsets == nullptr &&
                           (view.ndim == 0 || (view.shape != nullptr && view.strides != nullptr)) &&
                           has_shape(target, view.ndim, view.shape);
  const void* data = nullptr;
  if (is_readable && view.buf != nullptr && PyBuffer_IsContiguous(&view, 'C') != 0) {
    if (known != nullptr) {
      known->remember(value, view.buf, element, view.itemsize);
    }
    if (element == target.element && element != kBool && arena.hold(view)) {
      return view.buf;
    }
  }
  const Row row = is_readable ? row_for(element, target.element, false) : nullptr;
  char* const destination = row == nullptr ? nullptr : arena.take(target.size_bytes);
  if (destination != nullptr &&
      convert_array(row, static_cast<const char*>(view.buf), view.ndim, view.shape, view.strides,
                    destination, target.itemsize())) {
    data = destination;
    source = element;
  }
  PyBuffer_Release(&view);
  return data;
}

inline const void* Argument::from(PyObject* value) noexcept {
  if (PyFloat_CheckExact(value)) {
    const double number = PyFloat_AS_DOUBLE(value);
    return from_number(kF64, &number);
  }
  if (PyLong_CheckExact(value)) {
    return from_int(value);
  }
  if (is_plain_array(value)) {
    return from_array(reinterpret_cast<PyArrayObject*>(value));
  }
  if (PyArray_IsScalar(value, Generic)) {
    return from_numpy_scalar(value);
  }
  if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) {
    return from_sequence(value);
  }
  if (PyBool_Check(value)) {
    const Bool truth{static_cast<std::uint8_t>(value == Py_True)};
    return from_number(kBool, &truth);
  }
  if (PyComplex_CheckExact(value)) {
    const std::complex<double> number(PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value));
    return from_number(kC128, &number);
  }
  // NumPy reads other objects through their buffers too, but bytes as a string.
  const bool may_be_buffer =
      PyObject_CheckBuffer(value) != 0 && !PyBytes_Check(value) && !PyArray_Check(value) &&
      !PyList_Check(value) && !PyTuple_Check(value) && !PyLong_Check(value) &&
      !PyFloat_Check(value) && !PyComplex_Check(value) && !PyUnicode_Check(value);
  return may_be_buffer ? from_buffer(value) : nullptr;
}

// Returns the address of the converted elements, null if cyxla.dtypes has to convert. `known`,
// `source`, `ran_code` and `is_known` are as in Argument.
inline const void* convert_argument(PyObject* value, const Target& target, Arena& arena,
                                    JaxArrayAddress* known, Element& source, int& ran_code,
                                    int& is_known) noexcept {
  Argument argument{target, arena, known};
  const void* const data = argument.from(value);
  source = argument.source;
  ran_code |= argument.ran_code ? 1 : 0;
  is_known = argument.is_known ? 1 : 0;
  return data;
}

// Copies bools to `destination` as 0 and 1.
inline void normalise_bools(const void* data, std::size_t count, void* destination) noexcept {
  convert_row<Bool, Bool, false>(static_cast<const char*>(data), 1, static_cast<char*>(destination),
                                 static_cast<npy_intp>(count));
}

}  // namespace cyxla::glue

// SPDX-License-Identifier: Apache-2.0
// Converts between Python objects and C++ types for _runtime.pyx. All of it needs the GIL.
#pragma once

#include <Python.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/error.h"
#include "pjrt/compile_options.h"
#include "pjrt/named_value.h"
#include "runtime/error_log.h"
#include "runtime/program_file.h"
#include "runtime/runtime.h"
#include "runtime/signature.h"

namespace cyxla::glue {

// Indexed by ErrorCode, which begins at 1.
inline constexpr std::size_t kNumErrorCodes = static_cast<std::size_t>(ErrorCode::kFork) + 1;
inline std::array<PyObject*, kNumErrorCodes> exception_classes = {};

// Sets the exception class for an error code; the reference lives as long as the process.
inline void set_exception_class(ErrorCode code, PyObject* exception_class) {
  Py_INCREF(exception_class);
  exception_classes[static_cast<std::size_t>(code)] = exception_class;
}

inline void raise(ErrorCode code, const char* message) {
  // "replace", because a truncated message may end within a character.
  PyObject* text =
      PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "replace");
  if (text != nullptr) {
    PyErr_SetObject(exception_classes[static_cast<std::size_t>(code)], text);
    Py_DECREF(text);
  }
}

// Turns the C++ exception being handled into a Python one.
inline void translate_exception() {
  try {
    throw;
  } catch (const Error& error) {
    raise(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    raise(ErrorCode::kInternal, error.what());
  }
}

// Raises this thread's last recorded failure.
inline void raise_last_error() {
  std::array<char, runtime::kMessageSize> message;
  runtime::last_error(message.data(), message.size());
  raise(runtime::last_error_code(), message.data());
}

template <typename Map, typename Value>
void set_value(Map& map, const std::string& name, Value value) {
  map[name] = std::move(value);
}

inline void set_optional(std::optional<double>& target, double value) noexcept { target = value; }

// Returns a new reference to an attribute's value, or null with a Python exception set.
struct ToPython {
  PyObject* operator()(bool value) const { return PyBool_FromLong(value ? 1 : 0); }
  PyObject* operator()(std::int64_t value) const { return PyLong_FromLongLong(value); }
  PyObject* operator()(float value) const { return PyFloat_FromDouble(value); }
  PyObject* operator()(double value) const { return PyFloat_FromDouble(value); }
  PyObject* operator()(const std::string& value) const {
    return PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace");
  }
  PyObject* operator()(const std::vector<std::int64_t>& values) const {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(values.size()));
    for (std::size_t i = 0; tuple != nullptr && i < values.size(); ++i) {
      PyObject* item = (*this)(values[i]);
      if (item == nullptr) {
        Py_DECREF(tuple);
        return nullptr;
      }
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
    }
    return tuple;
  }
};

inline PyObject* named_values_to_python(const pjrt::NamedValues& values) {
  PyObject* result = PyDict_New();
  for (auto it = values.begin(); result != nullptr && it != values.end(); ++it) {
    PyObject* value = std::visit(ToPython{}, it->second);
    if (value == nullptr || PyDict_SetItemString(result, it->first.c_str(), value) < 0) {
      Py_CLEAR(result);
    }
    Py_XDECREF(value);
  }
  return result;
}

// Returns None for an empty optional.
template <typename Value>
PyObject* optional_to_python(const std::optional<Value>& value) {
  return value ? ToPython{}(*value) : Py_NewRef(Py_None);
}

}  // namespace cyxla::glue

// SPDX-License-Identifier: Apache-2.0
// The classes of cyxla.hpp in a module that uses only CPython.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cyxla/cyxla_import.h>

#include <array>
#include <complex>
#include <cyxla/cyxla.hpp>
#include <exception>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

static_assert(std::is_nothrow_move_constructible_v<cyxla::Call>);
static_assert(!std::is_copy_constructible_v<cyxla::Call>);
static_assert(std::is_copy_constructible_v<cyxla::Program>);
static_assert(sizeof(cyxla::Program) == 2 * sizeof(void*));

const cyxla_api* api = nullptr;
std::optional<cyxla::Program> kept;

// Converts a C++ exception: ExecutionError to RuntimeError, invalid_argument to ValueError.
template <typename Function>
PyObject* guarded(Function function) {
  try {
    return function();
  } catch (const cyxla::ExecutionError& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  }
  return nullptr;
}

std::optional<cyxla::Program> program_of(PyObject* executable) {
  const cyxla_program_spec* spec = api->program_spec(executable);
  if (spec == nullptr) {
    return std::nullopt;
  }
  return cyxla::Program(*api, *spec);
}

// Runs a function on a std::thread while this one keeps the GIL, and passes its exception on.
template <typename Function>
void on_thread(Function function) {
  std::exception_ptr thrown;
  std::thread thread([&] {
    try {
      function();
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  thread.join();
  if (thrown) {
    std::rethrow_exception(thrown);
  }
}

// The program (double[n], double) -> double on 0, 1, ... n-1 and `scalar`.
double execute_weighted(const cyxla::Program& program, double scalar) {
  std::vector<double> values(program.spec().input_elements[0]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(i);
  }
  const std::span<const double> view(values);
  const std::array inputs = {cyxla::input(view), cyxla::input(scalar)};
  double result = 0;
  const std::array<void*, 1> outputs = {&result};
  on_thread([&] { program.execute(inputs, outputs); });
  return result;
}

PyObject* execute(PyObject* /*self*/, PyObject* args) {
  PyObject* executable = nullptr;
  double scalar = 0;
  if (PyArg_ParseTuple(args, "Od", &executable, &scalar) == 0) {
    return nullptr;
  }
  const std::optional<cyxla::Program> program = program_of(executable);
  if (!program) {
    return nullptr;
  }
  return guarded([&] { return PyFloat_FromDouble(execute_weighted(*program, scalar)); });
}

// Keeps a copy of the Program, which outlives the Executable.
PyObject* keep(PyObject* /*self*/, PyObject* executable) {
  std::optional<cyxla::Program> program = program_of(executable);
  if (!program) {
    return nullptr;
  }
  const cyxla::Program copy = *program;
  kept = copy;
  Py_RETURN_NONE;
}

PyObject* execute_kept(PyObject* /*self*/, PyObject* scalar) {
  const double value = PyFloat_AsDouble(scalar);
  return guarded([&] { return PyFloat_FromDouble(execute_weighted(kept.value(), value)); });
}

PyObject* forget(PyObject* /*self*/, PyObject* /*unused*/) {
  kept.reset();
  Py_RETURN_NONE;
}

// Calls with `count` inputs, right or wrong for the program.
PyObject* execute_with_inputs(PyObject* /*self*/, PyObject* args) {
  PyObject* executable = nullptr;
  Py_ssize_t count = 0;
  if (PyArg_ParseTuple(args, "On", &executable, &count) == 0) {
    return nullptr;
  }
  const std::optional<cyxla::Program> program = program_of(executable);
  if (!program) {
    return nullptr;
  }
  const float value = 1;
  const std::vector<cyxla_input> inputs(static_cast<std::size_t>(count), cyxla::input(value));
  const std::array<void*, 1> outputs = {nullptr};
  return guarded([&]() -> PyObject* {
    program->execute(inputs, outputs);
    Py_RETURN_NONE;
  });
}

// Sums the results of a prepared call of the program (double[n], double) -> double for the scalars
// 1 to `count`. The call is moved, and outlives the Program it was made from.
PyObject* sum_prepared(PyObject* /*self*/, PyObject* args) {
  PyObject* executable = nullptr;
  Py_ssize_t count = 0;
  if (PyArg_ParseTuple(args, "On", &executable, &count) == 0) {
    return nullptr;
  }
  std::optional<cyxla::Program> program = program_of(executable);
  if (!program) {
    return nullptr;
  }
  return guarded([&] {
    std::vector<double> values(program->spec().input_elements[0], 1.0);
    double scalar = 0;
    double result = 0;
    double sum = 0;
    const std::array<void*, 1> outputs = {&result};
    std::vector<cyxla::Call> calls;
    {
      const std::array inputs = {cyxla::input(std::span<const double>(values)),
                                 cyxla::input(scalar)};
      cyxla::Call first = program->prepare(inputs, outputs);
      cyxla::Call second = program->prepare(inputs, outputs, false);
      second = std::move(first);
      calls.push_back(std::move(second));
    }
    program.reset();
    on_thread([&] {
      for (Py_ssize_t i = 1; i <= count; ++i) {
        scalar = static_cast<double>(i);
        calls.front()();
        sum += result;
      }
    });
    return PyFloat_FromDouble(sum);
  });
}

// PJRT's element type numbers of the C++ types.
PyObject* element_types(PyObject* /*self*/, PyObject* /*unused*/) {
  return Py_BuildValue(
      "{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}",                                   //
      "PRED", cyxla::ElementType<bool>::value, "S8", cyxla::ElementType<std::int8_t>::value,     //
      "S16", cyxla::ElementType<std::int16_t>::value,                                            //
      "S32", cyxla::ElementType<std::int32_t>::value,                                            //
      "S64", cyxla::ElementType<std::int64_t>::value,                                            //
      "U8", cyxla::ElementType<std::uint8_t>::value,                                             //
      "U16", cyxla::ElementType<std::uint16_t>::value,                                           //
      "U32", cyxla::ElementType<std::uint32_t>::value,                                           //
      "U64", cyxla::ElementType<std::uint64_t>::value, "F32", cyxla::ElementType<float>::value,  //
      "F64", cyxla::ElementType<double>::value,                                                  //
      "C64", cyxla::ElementType<std::complex<float>>::value,                                     //
      "C128", cyxla::ElementType<std::complex<double>>::value);
}

std::array methods = {
    PyMethodDef{"execute", execute, METH_VARARGS, nullptr},
    PyMethodDef{"keep", keep, METH_O, nullptr},
    PyMethodDef{"execute_kept", execute_kept, METH_O, nullptr},
    PyMethodDef{"forget", forget, METH_NOARGS, nullptr},
    PyMethodDef{"execute_with_inputs", execute_with_inputs, METH_VARARGS, nullptr},
    PyMethodDef{"sum_prepared", sum_prepared, METH_VARARGS, nullptr},
    PyMethodDef{"element_types", element_types, METH_NOARGS, nullptr},
    PyMethodDef{nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "cpp_classes",
                          nullptr,
                          -1,
                          methods.data(),
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_cpp_classes() {
  api = cyxla_import();
  return api == nullptr ? nullptr : PyModule_Create(&definition);
}

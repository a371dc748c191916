// SPDX-License-Identifier: Apache-2.0
// A C++20 module's way of using cyxla, compiled with pedantic warnings as errors.
#include <Python.h>

#include <array>
#include <complex>
#include <span>
#include <vector>

#include <cyxla/cyxla.h>
#include <cyxla/cyxla_import.h>
#include <cyxla/cyxla.hpp>

#include "abi_layout.h"

double cpp_consumer_execute(PyObject* executable, const std::vector<double>& values,
                            std::complex<float> scalar);

double cpp_consumer_execute(PyObject* executable, const std::vector<double>& values,
                            std::complex<float> scalar) {
  const cyxla_api* api = cyxla_import();
  if (api == nullptr) {
    return 0;
  }
  const cyxla_program_spec* spec = api->program_spec(executable);
  if (spec == nullptr) {
    return 0;
  }
  const cyxla::Program program(*api, *spec);
  double result = 0;
  std::array<float, 2> pair = {};
  const std::array inputs = {cyxla::input(std::span(values)), cyxla::input(scalar)};
  const std::array<void*, 2> outputs = {&result, nullptr};
  const std::vector<cyxla::Output> checked = {cyxla::output(result), cyxla::output(pair)};
  try {
    program.execute(inputs, outputs);
    program.execute(inputs, checked);
    program.execute({cyxla::input(values), cyxla::input(scalar)}, {cyxla::output(result), nullptr});
    cyxla::Call call = program.prepare(inputs, outputs);
    call();
    cyxla::Call moved = std::move(call);
    moved.rebind(0, cyxla::input(values));
    moved.rebind(2, cyxla::output(std::span(pair)));
    moved();
  } catch (const cyxla::ExecutionError& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return result;
}

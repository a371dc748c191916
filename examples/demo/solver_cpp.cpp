// SPDX-License-Identifier: Apache-2.0
// A solver in a plain CPython module. Its loop runs on a std::thread, without Python, and calls a
// program that cyxla compiled.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cyxla/cyxla_import.h>
#include <cyxla/cyxla.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

constexpr double kTolerance = 1e-6;  // length of the gradient at the minimum
constexpr int kMaxEvaluations = 1000;

const cyxla_api* api = nullptr;  // set when the module is imported

// A copy of doubles at an address that programs read in place.
class Array {
 public:
  explicit Array(std::span<const double> values)
      : memory_(static_cast<double*>(api->aligned_memory(values.size_bytes())), api->free_aligned),
        size_(values.size()) {
    if (memory_ == nullptr) {
      throw std::bad_alloc();
    }
    std::ranges::copy(values, memory_.get());
  }
  std::span<double> values() const { return {memory_.get(), size_}; }
  cyxla_input input() const { return cyxla::input(values()); }

 private:
  std::unique_ptr<double, void (*)(void*)> memory_;
  std::size_t size_;
};

// A program (point, features, labels) -> (value, gradient) with its arrays. Used by one thread.
class Objective {
 public:
  Objective(const cyxla::Program& program, std::span<const double> start,
            std::span<const double> features, std::span<const double> labels)
      : point_(start),
        features_(features),
        labels_(labels),
        gradient_(start.size()),
        call_(bind(program)) {}
  Objective(const Objective&) = delete;
  Objective& operator=(const Objective&) = delete;

  std::span<double> point() const { return point_.values(); }
  std::span<const double> gradient() const { return gradient_; }
  int evaluations() const { return evaluations_; }

  // Returns the value at point() and updates gradient().
  double operator()() {
    ++evaluations_;
    call_();
    return value_;
  }

 private:
  cyxla::Call bind(const cyxla::Program& program) {
    return program.prepare({point_.input(), features_.input(), labels_.input()},
                           {cyxla::output(value_), cyxla::output(gradient_)});
  }

  Array point_, features_, labels_;
  double value_ = 0;
  std::vector<double> gradient_;
  int evaluations_ = 0;
  cyxla::Call call_;
};

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

// Gradient descent with Barzilai-Borwein step lengths. A step is halved until the value is below
// the largest of the last ten. Leaves the minimum in point() and returns its value.
double minimize(Objective& objective) {
  const std::span<double> point = objective.point();
  double value = objective();
  std::vector<double> origin(point.begin(), point.end());
  std::vector<double> slope(objective.gradient().begin(), objective.gradient().end());
  std::array<double, 10> recent;
  recent.fill(value);
  double step = 1 / std::sqrt(dot(slope, slope));
  // Negated so that NaN continues to the limit of evaluations.
  for (std::size_t iteration = 0; !(std::sqrt(dot(slope, slope)) <= kTolerance); ++iteration) {
    const double bound = *std::ranges::max_element(recent);
    const double decrease = 1e-4 * dot(slope, slope);
    while (true) {
      if (objective.evaluations() == kMaxEvaluations) {
        throw std::runtime_error("no minimum after 1000 evaluations");
      }
      for (std::size_t i = 0; i < point.size(); ++i) {
        point[i] = origin[i] - step * slope[i];
      }
      value = objective();
      if (value <= bound - step * decrease) {
        break;
      }
      step /= 2;
    }
    double distance = 0;
    double curvature = 0;
    for (std::size_t i = 0; i < point.size(); ++i) {
      const double moved = point[i] - origin[i];
      distance += moved * moved;
      curvature += moved * (objective.gradient()[i] - slope[i]);
    }
    step = distance / curvature;
    recent[iteration % recent.size()] = value;
    std::ranges::copy(point, origin.begin());
    std::ranges::copy(objective.gradient(), slope.begin());
  }
  return value;
}

class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  ~GilRelease() { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_;
};

struct Minimum {
  double value = 0;
  int evaluations = 0;
};

// Runs the solver on its own thread; the minimum replaces `parameters`.
Minimum minimize_on_thread(const cyxla::Program& program, std::span<double> parameters,
                           std::span<const double> features, std::span<const double> labels) {
  const GilRelease release;
  Minimum minimum;
  std::exception_ptr failure;
  std::thread solver([&] {
    try {
      Objective objective(program, parameters, features, labels);
      minimum.value = minimize(objective);
      minimum.evaluations = objective.evaluations();
      std::ranges::copy(objective.point(), parameters.begin());
    } catch (...) {
      failure = std::current_exception();
    }
  });
  solver.join();
  if (failure) {
    std::rethrow_exception(failure);
  }
  return minimum;
}

std::span<double> doubles(const Py_buffer& buffer) {
  return {static_cast<double*>(buffer.buf), static_cast<std::size_t>(buffer.len) / sizeof(double)};
}

PyObject* minimize_buffers(PyObject* executable, const Py_buffer& parameters,
                           const Py_buffer& features, const Py_buffer& labels) {
  const cyxla_program_spec* spec = api->program_spec(executable);
  if (spec == nullptr) {
    return nullptr;
  }
  try {
    const cyxla::Program program(*api, *spec);
    const Minimum minimum =
        minimize_on_thread(program, doubles(parameters), doubles(features), doubles(labels));
    return Py_BuildValue("(di)", minimum.value, minimum.evaluations);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

PyObject* py_minimize(PyObject*, PyObject* arguments) {
  PyObject* executable = nullptr;
  Py_buffer parameters, features, labels;
  if (!PyArg_ParseTuple(arguments, "Ow*y*y*:minimize", &executable, &parameters, &features,
                        &labels)) {
    return nullptr;
  }
  PyObject* result = minimize_buffers(executable, parameters, features, labels);
  PyBuffer_Release(&parameters);
  PyBuffer_Release(&features);
  PyBuffer_Release(&labels);
  return result;
}

PyMethodDef methods[] = {
    {"minimize", py_minimize, METH_VARARGS,
     "minimize(executable, parameters, features, labels) -> (value, evaluations)\n\n"
     "Minimises on a thread without the GIL. The arrays are float64 and C-contiguous;\n"
     "`parameters` is the start, and the minimum afterwards."},
    {},
};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "solver_cpp", nullptr, -1, methods};

}  // namespace

PyMODINIT_FUNC PyInit_solver_cpp() {
  api = cyxla_import();
  return api == nullptr ? nullptr : PyModule_Create(&module);
}

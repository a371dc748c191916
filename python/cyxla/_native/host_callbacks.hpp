// SPDX-License-Identifier: Apache-2.0
// References to Python objects that may be given up on any thread, without the GIL and with locks
// held.
#pragma once

#include <Python.h>

#include <atomic>
#include <memory>
#include <utility>

namespace cyxla::glue {

struct Reference {
  PyObject* object;
  Reference* next;
};

inline std::atomic<Reference*> dropped_references{nullptr};

// Gives up what was dropped since. With the GIL.
inline int release_dropped(void* /*unused*/ = nullptr) {
  Reference* reference = dropped_references.exchange(nullptr, std::memory_order_acq_rel);
  while (reference != nullptr) {
    const Reference* const current = std::exchange(reference, reference->next);
    PyObject* const object = current->object;
    delete current;
    Py_DECREF(object);
  }
  return 0;
}

// A reference that is given up when the last copy of the result is gone: soon, by whichever thread
// has the GIL then, since waiting for it here could be waiting for a thread that waits for us.
inline std::shared_ptr<const void> shared_reference(PyObject* object) {
  auto* reference = new Reference{Py_NewRef(object), nullptr};
  return {object, [reference](const void* /*object*/) {
            reference->next = dropped_references.load(std::memory_order_relaxed);
            while (!dropped_references.compare_exchange_weak(reference->next, reference,
                                                             std::memory_order_acq_rel)) {
            }
            // A full queue is no matter: the next one to come along releases it.
            if (Py_IsInitialized() != 0) {
              Py_AddPendingCall(release_dropped, nullptr);
            }
          }};
}

// The GIL, where this thread has it: null if not.
inline void* give_up_gil() { return PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr; }

inline void take_gil(void* state) { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); }

}  // namespace cyxla::glue

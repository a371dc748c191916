// SPDX-License-Identifier: Apache-2.0
// References to Python objects that any thread may drop, without the GIL and with locks held.
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

// Releases the dropped references. Needs the GIL.
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

// Returns a reference to `object`. When the last copy is destroyed, the next thread with the GIL
// releases it: waiting for the GIL here could deadlock with a thread that waits for this one.
inline std::shared_ptr<const void> shared_reference(PyObject* object) {
  auto* reference = new Reference{Py_NewRef(object), nullptr};
  return {object, [reference](const void* /*object*/) {
            reference->next = dropped_references.load(std::memory_order_relaxed);
            while (!dropped_references.compare_exchange_weak(reference->next, reference,
                                                             std::memory_order_acq_rel)) {
            }
            // If the queue of pending calls is full, the next release_dropped() releases it.
            if (Py_IsInitialized() != 0) {
              Py_AddPendingCall(release_dropped, nullptr);
            }
          }};
}

// Releases the GIL and returns the thread state; null if this thread does not hold the GIL.
inline void* give_up_gil() { return PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr; }

inline void take_gil(void* state) { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); }

}  // namespace cyxla::glue

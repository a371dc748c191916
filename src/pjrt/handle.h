// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "pjrt/api.h"

namespace cyxla::pjrt {

// Destroys a PJRT object; one specialization for each type that cyxla owns.
template <typename Object>
void destroy(const Api& api, Object* object) noexcept;

template <>
void destroy(const Api& api, PJRT_Event* event) noexcept;
template <>
void destroy(const Api& api, PJRT_Client* client) noexcept;
template <>
void destroy(const Api& api, PJRT_Buffer* buffer) noexcept;
template <>
void destroy(const Api& api, PJRT_Executable* executable) noexcept;
template <>
void destroy(const Api& api, PJRT_LoadedExecutable* executable) noexcept;

// Sole owner of a PJRT object. Must be destroyed before the client that made the object; threads as
// the object allows.
template <typename Object>
class [[nodiscard]] Handle {
 public:
  Handle() noexcept = default;
  Handle(const Api& api, Object* object) noexcept : api_(&api), object_(object) {}
  Handle(Handle&& other) noexcept
      : api_(other.api_), object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      api_ = other.api_;
      object_ = std::exchange(other.object_, nullptr);
    }
    return *this;
  }
  ~Handle() { reset(); }

  Object* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

  void reset() noexcept {
    if (object_ != nullptr) {
      destroy(*api_, std::exchange(object_, nullptr));
    }
  }

 private:
  const Api* api_ = nullptr;
  Object* object_ = nullptr;
};

using Event = Handle<PJRT_Event>;
using Buffer = Handle<PJRT_Buffer>;

}  // namespace cyxla::pjrt

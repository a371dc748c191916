// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/aligned_memory.h"
#include "pjrt/element_type.h"
#include "pjrt/pjrt_header.h"
#include "runtime/error_log.h"
#include "runtime/execute.h"
#include "runtime/references.h"
#include "runtime/runtime.h"
#include "support/errors.h"
#include "support/fake_plugin.h"

namespace cyxla::test {

// Reads a fake program's signature from its text.
inline runtime::Signature signature_of(std::string_view code, std::string name = "f") {
  runtime::Signature signature;
  signature.name = std::move(name);
  std::istringstream lines{std::string(code)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string keyword;
    std::string type;
    if (!(words >> keyword >> type) || keyword == "#") {
      continue;
    }
    runtime::ArrayType array;
    const std::size_t bracket = type.find('[');
    while (pjrt::element_type_name(array.element_type) != type.substr(0, bracket)) {
      ++array.element_type;
    }
    std::istringstream dimensions(type.substr(bracket + 1, type.size() - bracket - 2));
    for (std::string dimension; std::getline(dimensions, dimension, ',');) {
      array.dimensions.push_back(std::stoll(dimension));
    }
    (keyword == "input" ? signature.inputs : signature.outputs).push_back(array);
  }
  return signature;
}

using runtime::ProgramReference;

// Makes a request to compile a program of the fake plugin.
inline runtime::CompileRequest request_of(std::string_view code, runtime::Signature signature) {
  runtime::CompileRequest request;
  request.code = code;
  request.format = "fake";
  request.signature = std::move(signature);
  return request;
}
inline runtime::CompileRequest request_of(std::string_view code) {
  return request_of(code, signature_of(code));
}

// An array `offset` bytes past an aligned address.
template <typename Element>
class Array {
 public:
  explicit Array(std::vector<Element> values, std::size_t offset = 0)
      : memory_(make_aligned(values.size() * sizeof(Element) + offset)),
        data_(static_cast<char*>(memory_.get()) + offset),
        size_(values.size()) {
    assign(values);
  }

  void assign(const std::vector<Element>& values) {
    for (std::size_t i = 0; i < size_; ++i) {
      std::memcpy(data_ + i * sizeof(Element), &values[i], sizeof(Element));
    }
  }
  std::vector<Element> values() const {
    std::vector<Element> result(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      std::memcpy(&result[i], data_ + i * sizeof(Element), sizeof(Element));
    }
    return result;
  }
  void* data() const { return data_; }
  cyxla_input input(std::int32_t element_type) const { return {data_, element_type, size_}; }

 private:
  AlignedMemory memory_;
  char* data_;
  std::size_t size_;
};

inline std::string last_message() {
  std::string text(runtime::last_error(nullptr, 0) + 1, '\0');
  text.resize(runtime::last_error(text.data(), text.size()));
  return text;
}

// Loads the fake plugin's runtime on first use, so that a test can configure the plugin before. A
// process has one runtime, so each of these tests needs its own process.
class RuntimeTest : public FakePluginTest {
 protected:
  void SetUp() override {
    FakePluginTest::SetUp();
    fake.set(FAKE_PLUGIN_NEEDS_NO_CANCELLATION, 1);
    ASSERT_EQ(runtime::Runtime::get(), nullptr)
        << "each of these tests needs its own process: run them with ctest";
  }
  void TearDown() override {
    runtime::Runtime::shut_down();
    FakePluginTest::TearDown();
  }

  runtime::Runtime& loaded() {
    runtime::Runtime* runtime = runtime::Runtime::get();
    return runtime != nullptr ? *runtime : runtime::Runtime::load({.path = FakePlugin::path()});
  }
  ProgramReference compile(std::string_view code, std::string name = "f") {
    return loaded().compile(request_of(code, signature_of(code, std::move(name)))).program;
  }
};

}  // namespace cyxla::test

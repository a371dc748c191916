// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pjrt/buffer.h"
#include "pjrt/client.h"
#include "pjrt/compile_options.h"
#include "pjrt/plugin.h"
#include "support/errors.h"
#include "support/fake_plugin.h"

namespace cyxla::test {

// Loads the fake plugin and makes its client on first use, so that a test can configure the plugin
// before.
class PjrtTest : public FakePluginTest {
 protected:
  void TearDown() override {
    client_.reset();
    FakePluginTest::TearDown();
  }

  const pjrt::Plugin& plugin() {
    if (!plugin_) {
      plugin_.emplace(pjrt::Plugin::load(FakePlugin::path()));
    }
    return *plugin_;
  }
  const pjrt::Api& api() { return plugin().api(); }
  const pjrt::Client& client() {
    if (!client_) {
      client_.emplace(pjrt::Client::create(api(), {}));
    }
    return *client_;
  }
  pjrt::LoadedExecutable compile(std::string_view code) {
    return client().compile(code, "fake", pjrt::serialize_compile_options({}));
  }
  // Makes a buffer with a copy of the values.
  template <typename Element>
  pjrt::Buffer copy(std::int32_t element_type, const std::vector<std::int64_t>& dimensions,
                    const std::vector<Element>& values) {
    pjrt::Buffer buffer;
    const pjrt::Status status =
        pjrt::copy_from_host(client(), values.data(), {element_type, dimensions}, buffer);
    EXPECT_TRUE(status.ok()) << status.message();
    return buffer;
  }
  // Returns a buffer's values.
  template <typename Element>
  std::vector<Element> read(PJRT_Buffer* buffer, std::int32_t element_type,
                            const std::vector<std::int64_t>& dimensions) {
    std::size_t num_elements = 1;
    for (const std::int64_t dimension : dimensions) {
      num_elements *= static_cast<std::size_t>(dimension);
    }
    std::vector<Element> values(num_elements);
    const pjrt::Status status = pjrt::copy_to_host(api(), buffer, {element_type, dimensions},
                                                   values.data(), num_elements * sizeof(Element));
    EXPECT_TRUE(status.ok()) << status.message();
    return values;
  }

 private:
  std::optional<pjrt::Plugin> plugin_;
  std::optional<pjrt::Client> client_;
};

}  // namespace cyxla::test

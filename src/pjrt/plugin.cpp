// SPDX-License-Identifier: Apache-2.0
#include "pjrt/plugin.h"

#include <mutex>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/shared_library.h"

namespace cyxla::pjrt {
namespace {

// PJRT_Plugin_Initialize may succeed only once per plugin, even when a later step fails and loading
// is tried again.
void initialize_once(const Api& api) {
  static std::mutex mutex;
  static auto& initialized = *new std::set<const PJRT_Api*>;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = initialized.insert(&api.table());
  if (!is_new) {
    return;
  }
  try {
    CYXLA_PJRT_ARGS(PJRT_Plugin_Initialize, args);
    checked_call(api, CYXLA_SLOT(PJRT_Plugin_Initialize), args, ErrorCode::kPlugin);
  } catch (...) {
    initialized.erase(entry);
    throw;
  }
}

}  // namespace

Plugin::Plugin(Api api) : api_(std::move(api)) {
  initialize_once(api_);

  CYXLA_PJRT_ARGS(PJRT_Plugin_Attributes, attributes);
  checked_call(api_, CYXLA_SLOT(PJRT_Plugin_Attributes), attributes, ErrorCode::kPlugin);
  attributes_ = from_pjrt(attributes.attributes, attributes.num_attributes);
}

Plugin Plugin::load(const std::string& path) {
  const SharedLibrary library = SharedLibrary::open(path);
  using GetPjrtApi = const PJRT_Api*();
  auto* get_pjrt_api = reinterpret_cast<GetPjrtApi*>(library.symbol("GetPjrtApi"));
  if (get_pjrt_api == nullptr) {
    throw Error(ErrorCode::kPlugin, "",
                path + " is a shared library but not a PJRT plugin: it has no function GetPjrtApi");
  }
  return Plugin(Api(get_pjrt_api(), path));
}

std::optional<std::array<std::int64_t, 3>> Plugin::stablehlo_version() const {
  const auto found = attributes_.find("stablehlo_current_version");
  if (found == attributes_.end()) {
    return std::nullopt;
  }
  const auto* parts = std::get_if<std::vector<std::int64_t>>(&found->second);
  if (parts == nullptr || parts->size() != 3) {
    return std::nullopt;
  }
  return std::array<std::int64_t, 3>{(*parts)[0], (*parts)[1], (*parts)[2]};
}

}  // namespace cyxla::pjrt

// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <cstdint>

#include "error.h"
#include "ledger.h"
#include "settings.h"

namespace fake_plugin {
namespace {

PJRT_NamedValue named_value(const char* name, std::size_t name_size, PJRT_NamedValue_Type type) {
  PJRT_NamedValue value = {};
  value.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  value.name = name;
  value.name_size = name_size;
  value.type = type;
  value.value_size = 1;
  return value;
}

}  // namespace

namespace implementation {

PJRT_Error* plugin_initialize(PJRT_Plugin_Initialize_Args& /*args*/) {
  static std::atomic<bool>& initialized = *new std::atomic<bool>(false);
  if (initialized.exchange(true)) {
    violation("PJRT_Plugin_Initialize", "the plugin is initialized already");
  }
  return nullptr;
}

PJRT_Error* plugin_attributes(PJRT_Plugin_Attributes_Args& args) {
  static constexpr std::int64_t kStablehloVersion[] = {1, 20, 3};
  static std::array<PJRT_NamedValue, 6> attributes;

  attributes[0] = named_value("xla_version", 11, PJRT_NamedValue_kInt64);
  attributes[0].int64_value = 2;
  attributes[1] = named_value("vendor", 6, PJRT_NamedValue_kString);
  attributes[1].string_value = "vendor's name";  // only the first six characters are the value
  attributes[1].value_size = 6;
  attributes[2] = named_value("share", 5, PJRT_NamedValue_kFloat);
  attributes[2].float_value = 0.5F;
  attributes[3] = named_value("fast", 4, PJRT_NamedValue_kBool);
  attributes[3].bool_value = true;
  // A type that is newer than the header.
  attributes[4] =
      named_value("future", 6, static_cast<PJRT_NamedValue_Type>(PJRT_NamedValue_kBool + 1));
  attributes[5] = named_value("stablehlo_current_version", 25, PJRT_NamedValue_kInt64List);
  attributes[5].int64_array_value = kStablehloVersion;
  attributes[5].value_size = setting(FAKE_PLUGIN_STABLEHLO_ATTRIBUTE) == 2 ? 2 : 3;
  if (setting(FAKE_PLUGIN_STABLEHLO_ATTRIBUTE) == 3) {
    attributes[5].type = PJRT_NamedValue_kString;
    attributes[5].string_value = "1.20.3";
    attributes[5].value_size = 6;
  }
  args.attributes = attributes.data();
  args.num_attributes = attributes.size() - (setting(FAKE_PLUGIN_STABLEHLO_ATTRIBUTE) == 1 ? 1 : 0);
  return nullptr;
}

}  // namespace implementation
}  // namespace fake_plugin

// SPDX-License-Identifier: Apache-2.0
#include "pjrt/compile_options.h"

#include "base/wire.h"

namespace cyxla::pjrt {
namespace {

// Field numbers of xla/pjrt/proto/compile_options.proto.
constexpr std::uint32_t kExecutableBuildOptions = 3;
constexpr std::uint32_t kEnvOptionOverrides = 7;
constexpr std::uint32_t kDeviceOrdinal = 1;
constexpr std::uint32_t kNumReplicas = 4;
constexpr std::uint32_t kNumPartitions = 5;
constexpr std::uint32_t kMapKey = 1;
constexpr std::uint32_t kMapValue = 2;
constexpr std::uint32_t kStringField = 1;
constexpr std::uint32_t kBoolField = 2;
constexpr std::uint32_t kIntField = 3;
constexpr std::uint32_t kDoubleField = 4;

struct AppendOverride {
  std::string& out;

  void operator()(const std::string& value) const {
    wire::append_bytes_field(out, kStringField, value);
  }
  void operator()(bool value) const { wire::append_varint_field(out, kBoolField, value ? 1 : 0); }
  void operator()(std::int64_t value) const {
    wire::append_varint_field(out, kIntField, static_cast<std::uint64_t>(value));
  }
  void operator()(double value) const { wire::append_double_field(out, kDoubleField, value); }
};

}  // namespace

std::string serialize_compile_options(const OptionOverrides& overrides, std::string_view base) {
  constexpr auto kNoDevice = static_cast<std::uint64_t>(std::int64_t{-1});
  std::string build_options;
  wire::append_varint_field(build_options, kDeviceOrdinal, kNoDevice);
  wire::append_varint_field(build_options, kNumReplicas, 1);
  wire::append_varint_field(build_options, kNumPartitions, 1);

  std::string result(base);
  wire::append_bytes_field(result, kExecutableBuildOptions, build_options);
  for (const auto& [name, value] : overrides) {
    std::string override_value;
    std::visit(AppendOverride{override_value}, value);
    std::string entry;
    wire::append_bytes_field(entry, kMapKey, name);
    wire::append_bytes_field(entry, kMapValue, override_value);
    wire::append_bytes_field(result, kEnvOptionOverrides, entry);
  }
  return result;
}

}  // namespace cyxla::pjrt

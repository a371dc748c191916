// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include <pjrt_c_api.h>

#include "completion.h"
#include "executable.h"

namespace fake_plugin {

// Makes a function report one item but a null pointer to it; does nothing for functions without a
// count.
template <typename Args>
void announce(Args& /*args*/) noexcept {}

inline void announce(PJRT_Plugin_Attributes_Args& args) noexcept { args.num_attributes = 1; }
inline void announce(PJRT_Client_PlatformName_Args& args) noexcept { args.platform_name_size = 1; }
inline void announce(PJRT_Client_PlatformVersion_Args& args) noexcept {
  args.platform_version_size = 1;
}
inline void announce(PJRT_Client_AddressableDevices_Args& args) noexcept {
  args.num_addressable_devices = 1;
}
inline void announce(PJRT_DeviceDescription_Kind_Args& args) noexcept { args.device_kind_size = 1; }
inline void announce(PJRT_DeviceDescription_DebugString_Args& args) noexcept {
  args.debug_string_size = 1;
}
inline void announce(PJRT_DeviceDescription_Attributes_Args& args) noexcept {
  args.num_attributes = 1;
}
inline void announce(PJRT_Executable_NumOutputs_Args& args) noexcept { args.num_outputs = 1; }
inline void announce(PJRT_Executable_OutputElementTypes_Args& args) noexcept {
  args.num_output_types = args.executable->program.outputs.size();
}
inline void announce(PJRT_Executable_OutputDimensions_Args& args) noexcept {
  static std::array<std::size_t, 16> ranks;
  ranks.fill(1);
  args.dim_sizes = ranks.data();
  args.num_outputs = args.executable->program.outputs.size();
}
inline void announce(PJRT_Executable_GetCostAnalysis_Args& args) noexcept {
  args.num_properties = 1;
}
inline void announce(PJRT_Executable_Serialize_Args& args) noexcept {
  args.serialized_bytes_size = 1;
}
inline void announce(PJRT_Executable_OptimizedProgram_Args& args) noexcept {
  args.program->code_size = 1;
  args.program->format_size = 15;  // that of "hlo_with_config"
}
// Reports an execution that has ended, without outputs.
inline void announce(PJRT_LoadedExecutable_Execute_Args& args) {
  const CompletionReference done = CompletionReference::make();
  done->complete(std::nullopt);
  args.device_complete_events[0] = make_event(Function::PJRT_LoadedExecutable_Execute, done);
}

}  // namespace fake_plugin

// SPDX-License-Identifier: Apache-2.0
// The functions of the PJRT API that the plugin has. The other slots of its table are null.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pjrt_c_api.h>

namespace fake_plugin {

// EARLY functions fail before they do anything. LATE functions do their work and then report the
// failure: Destroy frees a handle and Await completes an event even when they fail.
#define FAKE_PLUGIN_FUNCTIONS(EARLY, LATE)                                            \
  EARLY(PJRT_Error_GetCode, error_get_code)                                           \
  EARLY(PJRT_Plugin_Initialize, plugin_initialize)                                    \
  EARLY(PJRT_Plugin_Attributes, plugin_attributes)                                    \
  LATE(PJRT_Event_Destroy, event_destroy)                                             \
  EARLY(PJRT_Event_IsReady, event_is_ready)                                           \
  LATE(PJRT_Event_Await, event_await)                                                 \
  EARLY(PJRT_Client_Create, client_create)                                            \
  LATE(PJRT_Client_Destroy, client_destroy)                                           \
  EARLY(PJRT_Client_PlatformName, client_platform_name)                               \
  EARLY(PJRT_Client_PlatformVersion, client_platform_version)                         \
  EARLY(PJRT_Client_AddressableDevices, client_addressable_devices)                   \
  EARLY(PJRT_Device_GetDescription, device_get_description)                           \
  EARLY(PJRT_DeviceDescription_Kind, device_description_kind)                         \
  EARLY(PJRT_DeviceDescription_DebugString, device_description_debug_string)          \
  EARLY(PJRT_DeviceDescription_Attributes, device_description_attributes)             \
  EARLY(PJRT_Client_Compile, client_compile)                                          \
  EARLY(PJRT_Client_BufferFromHostBuffer, client_buffer_from_host_buffer)             \
  EARLY(PJRT_Client_CreateViewOfDeviceBuffer, client_create_view)                     \
  LATE(PJRT_Executable_Destroy, executable_destroy)                                   \
  EARLY(PJRT_Executable_NumOutputs, executable_num_outputs)                           \
  EARLY(PJRT_Executable_OutputElementTypes, executable_output_element_types)          \
  EARLY(PJRT_Executable_OutputDimensions, executable_output_dimensions)               \
  EARLY(PJRT_Executable_GetCostAnalysis, executable_get_cost_analysis)                \
  EARLY(PJRT_Executable_GetCompiledMemoryStats, executable_get_compiled_memory_stats) \
  EARLY(PJRT_Executable_Serialize, executable_serialize)                              \
  EARLY(PJRT_Executable_DeserializeAndLoad, executable_deserialize_and_load)          \
  EARLY(PJRT_Executable_OptimizedProgram, executable_optimized_program)               \
  LATE(PJRT_LoadedExecutable_Destroy, loaded_executable_destroy)                      \
  EARLY(PJRT_LoadedExecutable_GetExecutable, loaded_executable_get_executable)        \
  EARLY(PJRT_LoadedExecutable_Execute, loaded_executable_execute)                     \
  LATE(PJRT_Buffer_Destroy, buffer_destroy)                                           \
  EARLY(PJRT_Buffer_ToHostBuffer, buffer_to_host_buffer)                              \
  EARLY(PJRT_Buffer_IsOnCpu, buffer_is_on_cpu)                                        \
  EARLY(PJRT_Buffer_ReadyEvent, buffer_ready_event)                                   \
  EARLY(PJRT_Buffer_UnsafePointer, buffer_unsafe_pointer)

enum class Function : std::uint32_t {
#define FAKE_PLUGIN_ID(function, implementation) function,
  FAKE_PLUGIN_FUNCTIONS(FAKE_PLUGIN_ID, FAKE_PLUGIN_ID)
#undef FAKE_PLUGIN_ID
      PJRT_FFI_Register_Handler,
  PJRT_Gpu_Register_Custom_Call,
  kCanFail,  // the functions before this one return an error
  PJRT_Error_Destroy = kCanFail,
  PJRT_Error_Message,
  kCount,
};

inline constexpr std::size_t kNumFunctions = static_cast<std::size_t>(Function::kCount);

const char* function_name(Function function) noexcept;
// Returns false for an unknown name.
bool find_function(const char* name, Function& out) noexcept;

namespace implementation {

#define FAKE_PLUGIN_DECLARE(function, implementation) \
  PJRT_Error* implementation(function##_Args& args);
FAKE_PLUGIN_FUNCTIONS(FAKE_PLUGIN_DECLARE, FAKE_PLUGIN_DECLARE)
#undef FAKE_PLUGIN_DECLARE
void error_destroy(PJRT_Error_Destroy_Args& args);
void error_message(PJRT_Error_Message_Args& args);

}  // namespace implementation
}  // namespace fake_plugin

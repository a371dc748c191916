// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client.h"

#include "base/error.h"
#include "pjrt/device.h"

namespace cyxla::pjrt {

Client::Client(const Api& api, PJRT_Client* client) : api_(&api), client_(api, client) {
  CYXLA_PJRT_ARGS(PJRT_Client_PlatformName, name);
  name.client = client;
  checked_call(api, CYXLA_SLOT(PJRT_Client_PlatformName), name, ErrorCode::kPlugin);
  check_given(CYXLA_SLOT(PJRT_Client_PlatformName), name.platform_name, "name", ErrorCode::kPlugin);
  platform_name_.assign(name.platform_name, name.platform_name_size);

  CYXLA_PJRT_ARGS(PJRT_Client_PlatformVersion, version);
  version.client = client;
  checked_call(api, CYXLA_SLOT(PJRT_Client_PlatformVersion), version, ErrorCode::kPlugin);
  if (version.platform_version != nullptr) {
    platform_version_.assign(version.platform_version, version.platform_version_size);
  }

  device_ = first_addressable_device(api, client);
}

Client Client::create(const Api& api, const NamedValues& options) {
  const std::vector<PJRT_NamedValue> create_options = to_pjrt(options);
  CYXLA_PJRT_ARGS(PJRT_Client_Create, args);
  args.create_options = create_options.data();
  args.num_options = create_options.size();
  checked_call(api, CYXLA_SLOT(PJRT_Client_Create), args, ErrorCode::kPlugin);
  check_given(CYXLA_SLOT(PJRT_Client_Create), args.client, "client", ErrorCode::kPlugin);
  return {api, args.client};
}

LoadedExecutable Client::compile(std::string_view code, std::string_view format,
                                 std::string_view compile_options) const {
  // The header declares the code mutable, but plugins do not write to it.
  PJRT_Program program = {};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = const_cast<char*>(code.data());
  program.code_size = code.size();
  program.format = format.data();
  program.format_size = format.size();

  CYXLA_PJRT_ARGS(PJRT_Client_Compile, args);
  args.client = client_.get();
  args.program = &program;
  args.compile_options = compile_options.data();
  args.compile_options_size = compile_options.size();
  checked_call(*api_, CYXLA_SLOT(PJRT_Client_Compile), args, ErrorCode::kCompile);
  check_given(CYXLA_SLOT(PJRT_Client_Compile), args.executable, "executable", ErrorCode::kCompile);
  return {*api_, args.executable};
}

LoadedExecutable Client::deserialize(std::string_view serialized) const {
  CYXLA_PJRT_ARGS(PJRT_Executable_DeserializeAndLoad, args);
  args.client = client_.get();
  args.serialized_executable = serialized.data();
  args.serialized_executable_size = serialized.size();
  checked_call(*api_, CYXLA_SLOT(PJRT_Executable_DeserializeAndLoad), args, ErrorCode::kCompile);
  check_given(CYXLA_SLOT(PJRT_Executable_DeserializeAndLoad), args.loaded_executable, "executable",
              ErrorCode::kCompile);
  return {*api_, args.loaded_executable};
}

}  // namespace cyxla::pjrt

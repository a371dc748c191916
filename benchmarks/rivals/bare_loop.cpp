// SPDX-License-Identifier: Apache-2.0
// A loop written by hand against the PJRT header, with a client of its own. Its variants: copies in
// and out; views kept and outputs read by pointer, the cheapest way that is valid for every client;
// the same without waiting for events; the same with a new view of every input in each call.
#include <dlfcn.h>
#include <pjrt_c_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

thread_local std::string last_error;

#define ARGS(function, variable) \
  function##_Args variable = {}; \
  variable.struct_size = function##_Args_STRUCT_SIZE

struct Client {
  const PJRT_Api* api = nullptr;
  PJRT_Client* client = nullptr;
  PJRT_Device* device = nullptr;
};

// Returns false and keeps the message if there is an error.
bool ok(const PJRT_Api* api, PJRT_Error* error) {
  if (error == nullptr) {
    return true;
  }
  ARGS(PJRT_Error_Message, message);
  message.error = error;
  api->PJRT_Error_Message(&message);
  last_error.assign(message.message, message.message_size);
  ARGS(PJRT_Error_Destroy, destroy);
  destroy.error = error;
  api->PJRT_Error_Destroy(&destroy);
  return false;
}

bool await_and_destroy(const PJRT_Api* api, PJRT_Event* event) {
  ARGS(PJRT_Event_Await, await);
  await.event = event;
  const bool done = ok(api, api->PJRT_Event_Await(&await));
  ARGS(PJRT_Event_Destroy, destroy);
  destroy.event = event;
  return ok(api, api->PJRT_Event_Destroy(&destroy)) && done;
}

bool destroy_buffer(const PJRT_Api* api, PJRT_Buffer* buffer) {
  ARGS(PJRT_Buffer_Destroy, args);
  args.buffer = buffer;
  return ok(api, api->PJRT_Buffer_Destroy(&args));
}

struct Input {
  PJRT_Buffer_Type type = PJRT_Buffer_Type_INVALID;
  std::vector<std::int64_t> dims;
};

struct Program {
  Client* client = nullptr;
  PJRT_LoadedExecutable* executable = nullptr;
  std::vector<Input> inputs;
  std::vector<std::size_t> output_bytes;
};

// One loop: its arguments, and the argument structs of Execute.
struct State {
  const Program* program = nullptr;
  std::size_t num_sets = 1;
  std::size_t next_set = 0;
  std::vector<void*> data;  // of the inputs of all sets, one set after the other
  std::vector<void*> outputs;
  std::vector<PJRT_Buffer*> arguments;
  std::vector<PJRT_Buffer*> results;
};

void ignore_deletion(void*, void*) {}

PJRT_Buffer* view_of(const Client& client, const Input& input, void* data) {
  ARGS(PJRT_Client_CreateViewOfDeviceBuffer, args);
  args.client = client.client;
  args.device_buffer_ptr = data;
  args.dims = input.dims.data();
  args.num_dims = input.dims.size();
  args.element_type = input.type;
  args.device = client.device;
  args.on_delete_callback = ignore_deletion;
  return ok(client.api, client.api->PJRT_Client_CreateViewOfDeviceBuffer(&args)) ? args.buffer
                                                                                 : nullptr;
}

PJRT_Buffer* copy_of(const Client& client, const Input& input, const void* data) {
  ARGS(PJRT_Client_BufferFromHostBuffer, args);
  args.client = client.client;
  args.data = data;
  args.type = input.type;
  args.dims = input.dims.data();
  args.num_dims = input.dims.size();
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args.device = client.device;
  if (!ok(client.api, client.api->PJRT_Client_BufferFromHostBuffer(&args)) ||
      !await_and_destroy(client.api, args.done_with_host_buffer)) {
    return nullptr;
  }
  return args.buffer;
}

bool execute(State& state, PJRT_Event** complete) {
  const PJRT_Api* api = state.program->client->api;
  PJRT_ExecuteOptions options = {};
  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  PJRT_Buffer* const* arguments = state.arguments.data();
  PJRT_Buffer** results = state.results.data();
  ARGS(PJRT_LoadedExecutable_Execute, args);
  args.executable = state.program->executable;
  args.options = &options;
  args.argument_lists = &arguments;
  args.num_devices = 1;
  args.num_args = state.arguments.size();
  args.output_lists = &results;
  args.device_complete_events = complete;
  return ok(api, api->PJRT_LoadedExecutable_Execute(&args));
}

bool read_by_pointer(State& state) {
  const PJRT_Api* api = state.program->client->api;
  for (std::size_t i = 0; i < state.results.size(); ++i) {
    ARGS(PJRT_Buffer_UnsafePointer, pointer);
    pointer.buffer = state.results[i];
    if (!ok(api, api->PJRT_Buffer_UnsafePointer(&pointer))) {
      return false;
    }
    std::memcpy(state.outputs[i], reinterpret_cast<const void*>(pointer.buffer_pointer),
                state.program->output_bytes[i]);
    destroy_buffer(api, state.results[i]);
  }
  return true;
}

bool read_by_copy(State& state) {
  const PJRT_Api* api = state.program->client->api;
  for (std::size_t i = 0; i < state.results.size(); ++i) {
    ARGS(PJRT_Buffer_ToHostBuffer, copy);
    copy.src = state.results[i];
    copy.dst = state.outputs[i];
    copy.dst_size = state.program->output_bytes[i];
    if (!ok(api, api->PJRT_Buffer_ToHostBuffer(&copy)) || !await_and_destroy(api, copy.event)) {
      return false;
    }
    destroy_buffer(api, state.results[i]);
  }
  return true;
}

void* const* next_data(State& state) {
  void* const* data = state.data.data() + state.next_set * state.program->inputs.size();
  state.next_set = state.next_set + 1 == state.num_sets ? 0 : state.next_set + 1;
  return data;
}

}  // namespace

extern "C" {

const char* bare_error() { return last_error.c_str(); }

// A client of the plugin that the process has already loaded and initialized. `inline_client`
// requests one device that executes on the calling thread; otherwise the plugin's defaults apply.
void* bare_client(const char* plugin, int inline_client) {
  void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library == nullptr ? nullptr : dlsym(library, "GetPjrtApi");
  if (symbol == nullptr) {
    last_error = dlerror();
    return nullptr;
  }
  const PJRT_Api* api = reinterpret_cast<const PJRT_Api* (*)()>(symbol)();

  PJRT_NamedValue options[2] = {};
  options[0].struct_size = options[1].struct_size = PJRT_NamedValue_STRUCT_SIZE;
  options[0].name = "cpu_device_count";
  options[0].name_size = std::strlen(options[0].name);
  options[0].type = PJRT_NamedValue_kInt64;
  options[0].int64_value = 1;
  options[1].name = "asynchronous";
  options[1].name_size = std::strlen(options[1].name);
  options[1].type = PJRT_NamedValue_kBool;
  options[1].bool_value = false;
  options[0].value_size = options[1].value_size = 1;
  ARGS(PJRT_Client_Create, create);
  create.create_options = options;
  create.num_options = inline_client != 0 ? 2 : 0;
  if (!ok(api, api->PJRT_Client_Create(&create))) {
    return nullptr;
  }
  ARGS(PJRT_Client_AddressableDevices, devices);
  devices.client = create.client;
  if (!ok(api, api->PJRT_Client_AddressableDevices(&devices))) {
    return nullptr;
  }
  return new Client{api, create.client, devices.addressable_devices[0]};
}

// Compiles StableHLO. `dims` holds the dimensions of all inputs, one input after the other.
void* bare_program(void* client, const char* code, std::size_t code_size, std::size_t num_inputs,
                   const std::int32_t* types, const std::size_t* ranks, const std::int64_t* dims,
                   std::size_t num_outputs, const std::size_t* output_bytes) {
  // CompileOptionsProto: executable_build_options { num_replicas: 1, num_partitions: 1 }.
  static constexpr char kOptions[] = {0x1a, 0x04, 0x20, 0x01, 0x28, 0x01};
  auto* own = static_cast<Client*>(client);
  PJRT_Program source = {};
  source.struct_size = PJRT_Program_STRUCT_SIZE;
  source.code = const_cast<char*>(code);
  source.code_size = code_size;
  source.format = "mlir";
  source.format_size = 4;
  ARGS(PJRT_Client_Compile, compile);
  compile.client = own->client;
  compile.program = &source;
  compile.compile_options = kOptions;
  compile.compile_options_size = sizeof kOptions;
  if (!ok(own->api, own->api->PJRT_Client_Compile(&compile))) {
    return nullptr;
  }
  auto* program =
      new Program{own, compile.executable, {}, {output_bytes, output_bytes + num_outputs}};
  for (std::size_t i = 0; i < num_inputs; ++i) {
    program->inputs.push_back({static_cast<PJRT_Buffer_Type>(types[i]), {dims, dims + ranks[i]}});
    dims += ranks[i];
  }
  return program;
}

void bare_program_destroy(void* program) {
  auto* own = static_cast<Program*>(program);
  ARGS(PJRT_LoadedExecutable_Destroy, args);
  args.executable = own->executable;
  ok(own->client->api, own->client->api->PJRT_LoadedExecutable_Destroy(&args));
  delete own;
}

// A loop over `num_sets` sets of inputs. With `kept`, views of the first set are made now.
void* bare_state(const void* program, std::size_t num_sets, void* const* data, void* const* outputs,
                 int kept) {
  const auto* own = static_cast<const Program*>(program);
  const std::size_t num_inputs = own->inputs.size();
  const std::size_t num_outputs = own->output_bytes.size();
  auto* state = new State{own,
                          num_sets,
                          0,
                          {data, data + num_sets * num_inputs},
                          {outputs, outputs + num_outputs},
                          std::vector<PJRT_Buffer*>(num_inputs),
                          std::vector<PJRT_Buffer*>(num_outputs)};
  for (std::size_t i = 0; kept != 0 && i < num_inputs; ++i) {
    state->arguments[i] = view_of(*own->client, own->inputs[i], data[i]);
    if (state->arguments[i] == nullptr) {
      return nullptr;
    }
  }
  return state;
}

void bare_state_destroy(void* state, int kept) {
  auto* own = static_cast<State*>(state);
  for (std::size_t i = 0; kept != 0 && i < own->arguments.size(); ++i) {
    destroy_buffer(own->program->client->api, own->arguments[i]);
  }
  delete own;
}

int bare_step_kept(void* state) {
  auto& own = *static_cast<State*>(state);
  PJRT_Event* complete = nullptr;
  return execute(own, &complete) && await_and_destroy(own.program->client->api, complete) &&
                 read_by_pointer(own)
             ? 0
             : -1;
}

// Valid only with a client that executes on the calling thread, because it waits for no event.
int bare_step_unawaited(void* state) {
  auto& own = *static_cast<State*>(state);
  return execute(own, nullptr) && read_by_pointer(own) ? 0 : -1;
}

int bare_step_fresh_views(void* state) {
  auto& own = *static_cast<State*>(state);
  const Client& client = *own.program->client;
  void* const* data = next_data(own);
  for (std::size_t i = 0; i < own.arguments.size(); ++i) {
    own.arguments[i] = view_of(client, own.program->inputs[i], data[i]);
    if (own.arguments[i] == nullptr) {
      return -1;
    }
  }
  const int result = bare_step_kept(state);
  for (PJRT_Buffer* argument : own.arguments) {
    destroy_buffer(client.api, argument);
  }
  return result;
}

int bare_step_copies(void* state) {
  auto& own = *static_cast<State*>(state);
  const Client& client = *own.program->client;
  void* const* data = next_data(own);
  for (std::size_t i = 0; i < own.arguments.size(); ++i) {
    own.arguments[i] = copy_of(client, own.program->inputs[i], data[i]);
    if (own.arguments[i] == nullptr) {
      return -1;
    }
  }
  const bool done = execute(own, nullptr) && read_by_copy(own);
  for (PJRT_Buffer* argument : own.arguments) {
    destroy_buffer(client.api, argument);
  }
  return done ? 0 : -1;
}

}  // extern "C"

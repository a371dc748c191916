// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <vector>

#include "buffer.h"
#include "error.h"
#include "executable.h"
#include "settings.h"

namespace fake_plugin {
namespace {

constexpr const char* kWhere = "PJRT_LoadedExecutable_Execute";

std::atomic<std::int64_t>& running_count() {
  static std::atomic<std::int64_t>& count = *new std::atomic<std::int64_t>(0);
  return count;
}

// One execution's work. Its vectors keep their capacity between uses.
struct Execution : Task {
  void run() noexcept override {
    take_time(true);
    if (execute_callback().function != nullptr) {
      execute_callback().function(execute_callback().user_arg);
    }
    std::optional<Failure> failure;
    input_data.clear();
    for (const PJRT_Buffer* input : inputs) {
      if (const auto earlier = input->ready->wait(); earlier) {
        failure = earlier;
      }
      input_data.push_back(input->data);
    }
    const Program& program = executable->program;
    for (std::size_t i = 0; i < outputs.size() && !failure; ++i) {
      if (program.outputs[i].operation == Operation::kFail) {
        failure = program.outputs[i].failure;
      } else {
        evaluate(program, program.outputs[i], input_data.data(), outputs[i]->data);
      }
    }
    for (PJRT_Buffer* input : inputs) {
      input->uses.fetch_sub(1);
    }
    for (PJRT_Buffer* output : outputs) {
      output->uses.fetch_sub(1);
    }
    executable->running.fetch_sub(1, std::memory_order_relaxed);
    running_count().fetch_sub(1, std::memory_order_relaxed);
    completion->complete(failure);
    completion.reset();
    Pool<Execution>::give(this);
  }

  PJRT_LoadedExecutable* executable = nullptr;
  std::vector<PJRT_Buffer*> inputs;
  std::vector<PJRT_Buffer*> outputs;
  std::vector<const void*> input_data;
  CompletionReference completion;
  Execution* next_free = nullptr;
};

PJRT_Error* check_arguments(const PJRT_LoadedExecutable_Execute_Args& args) {
  if (!PJRT_LoadedExecutable::check(args.executable, kWhere)) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a loaded executable");
  }
  if (args.options == nullptr || args.options->struct_size != PJRT_ExecuteOptions_STRUCT_SIZE) {
    violation(kWhere, "wrong PJRT_ExecuteOptions struct_size");
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "no options");
  }
  if (args.num_devices != 1) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "the program is for 1 device");
  }
  const Program& program = args.executable->program;
  if (args.num_args != program.inputs.size()) {
    return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "%zu arguments given, %zu expected",
                      args.num_args, program.inputs.size());
  }
  for (std::size_t i = 0; i < args.num_args; ++i) {
    const PJRT_Buffer* argument = args.argument_lists[0][i];
    if (!PJRT_Buffer::check(argument, kWhere) || !argument->has_type(program.inputs[i])) {
      return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "argument %zu has another type", i);
    }
    if (argument->was_donated) {
      return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "argument %zu was donated", i);
    }
  }
  const PJRT_ExecuteOptions& options = *args.options;
  for (std::size_t i = 0; i < options.num_non_donatable_input_indices; ++i) {
    const std::int64_t index = options.non_donatable_input_indices[i];
    if (index < 0 || static_cast<std::size_t>(index) >= args.num_args) {
      violation(kWhere, "non_donatable_input_indices names no input");
    }
  }
  return nullptr;
}

// Returns the argument whose memory the output takes over, or null.
PJRT_Buffer* donated_argument(const PJRT_LoadedExecutable_Execute_Args& args,
                              const Output& output) {
  if (!output.into || !args.argument_lists[0][*output.into]->may_be_donated) {
    return nullptr;
  }
  const std::int64_t* first = args.options->non_donatable_input_indices;
  const std::int64_t* last = first + args.options->num_non_donatable_input_indices;
  const bool is_forbidden = std::find(first, last, static_cast<std::int64_t>(*output.into)) != last;
  return is_forbidden ? nullptr : args.argument_lists[0][*output.into];
}

}  // namespace

std::int64_t running() noexcept { return running_count().load(std::memory_order_relaxed); }

namespace implementation {

PJRT_Error* loaded_executable_execute(PJRT_LoadedExecutable_Execute_Args& args) {
  if (PJRT_Error* error = check_arguments(args); error != nullptr) {
    return error;
  }
  if (setting(FAKE_PLUGIN_RECORD_EXECUTIONS) != 0) {
    record_numbers(FAKE_PLUGIN_NON_DONATABLE, args.options->non_donatable_input_indices,
                   args.options->num_non_donatable_input_indices);
  }
  PJRT_LoadedExecutable* executable = args.executable;
  executable->running.fetch_add(1, std::memory_order_relaxed);
  running_count().fetch_add(1, std::memory_order_relaxed);

  Execution* execution = Pool<Execution>::take();
  execution->executable = executable;
  execution->completion = CompletionReference::make();
  execution->inputs.clear();
  for (std::size_t i = 0; i < args.num_args; ++i) {
    PJRT_Buffer* input = args.argument_lists[0][i];
    input->uses.fetch_add(1);
    execution->inputs.push_back(input);
  }
  execution->outputs.clear();
  for (std::size_t i = 0; i < executable->program.outputs.size(); ++i) {
    const ArrayType& type = executable->program.outputs[i].type;
    PJRT_Buffer* donated = donated_argument(args, executable->program.outputs[i]);
    PJRT_Buffer* output = donated != nullptr
                              ? take_over(*donated)
                              : make_buffer(*executable->client, type.element_type,
                                            type.dimensions.data(), type.dimensions.size());
    output->ready = execution->completion;
    output->uses.fetch_add(1);
    execution->outputs.push_back(output);
    args.output_lists[0][i] = output;
  }
  if (args.device_complete_events != nullptr) {
    args.device_complete_events[0] =
        setting(FAKE_PLUGIN_NULL_EXECUTE_EVENTS) != 0
            ? nullptr
            : make_event(Function::PJRT_LoadedExecutable_Execute, execution->completion);
  }
  if (setting(FAKE_PLUGIN_NULL_EXECUTE_EVENTS) != 0 && execution->outputs.empty()) {
    execution->run();  // callers have nothing to wait for later
  } else {
    run_task(*executable->client, *execution);
  }
  return nullptr;
}

}  // namespace implementation
}  // namespace fake_plugin

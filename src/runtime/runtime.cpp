// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include "base/asymmetric_fence.h"
#include "base/environment_variable.h"
#include "base/error.h"
#include "base/plugin_scope.h"
#include "direct/refusal.h"
#include "runtime/host_callbacks.h"

namespace cyxla::runtime {
namespace {

std::mutex load_mutex;
std::atomic<Runtime*> loaded_runtime{nullptr};
std::atomic<bool> forked_child{false};

// PJRT_Plugin_Initialize may run only once per plugin, so a plugin whose client could not be made
// is kept for the next attempt. Never destroyed.
const pjrt::Plugin& load_plugin(const std::string& path) {
  static auto* plugins = new std::map<std::string, std::unique_ptr<pjrt::Plugin>>;
  std::unique_ptr<pjrt::Plugin>& plugin = (*plugins)[path];
  if (plugin == nullptr) {
    plugin = std::make_unique<pjrt::Plugin>(pjrt::Plugin::load(path));
  }
  return *plugin;
}

// PJRT has no option for the pool's size. XLA:CPU reads this variable when it makes a client.
constexpr const char* kPoolSizeVariable = "PJRT_NPROC";

// Older plugins silently ignore the option.
bool asks_for_synchrony(const pjrt::Api& api, const pjrt::NamedValues& options) {
  constexpr int kFirstMinor = 115;
  const auto found = options.find("asynchronous");
  const bool* value = found == options.end() ? nullptr : std::get_if<bool>(&found->second);
  return api.version().minor >= kFirstMinor && value != nullptr && !*value;
}

// Searches for the attributes' names, which appear in a module's text and bytecode alike.
bool marks_donation(std::string_view code) noexcept {
  return code.find("tf.aliasing_output") != std::string_view::npos ||
         code.find("jax.buffer_donor") != std::string_view::npos;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Runtime::Runtime(const pjrt::Plugin& plugin, pjrt::Client client)
    : plugin_(plugin),
      client_(std::move(client)),
      ffi_registry_(plugin_.api()),
      capabilities_(probe_capabilities(*client_)),
      direct_route_(plugin_, *client_, capabilities_) {}

Runtime& Runtime::load(LoadRequest request) {
  const std::lock_guard lock(load_mutex);
  const PluginScope plugin_scope;
  if (get() != nullptr) {
    throw Error(ErrorCode::kPlugin, "",
                "the process already runs the plugin " + get()->plugin().api().source() +
                    "; a process can load only one");
  }
  prepare_asymmetric_fences();
  const pjrt::Plugin& plugin = load_plugin(request.path);
  const bool is_synchronous = asks_for_synchrony(plugin.api(), request.options);
  std::optional<EnvironmentVariable> pool_size;
  if (request.threads) {
    pool_size.emplace(kPoolSizeVariable, std::to_string(*request.threads));
  }
  pjrt::Client client = pjrt::Client::create(plugin.api(), request.options);
  pool_size.reset();
  note_pool(is_synchronous, request.threads);
  std::unique_ptr<Runtime> runtime(new Runtime(plugin, std::move(client)));
  if (pthread_atfork(nullptr, nullptr,
                     [] { forked_child.store(true, std::memory_order_relaxed); }) != 0) {
    throw std::bad_alloc();
  }
  loaded_runtime.store(runtime.get(), std::memory_order_release);
  return *runtime.release();
}

Runtime* Runtime::get() noexcept { return loaded_runtime.load(std::memory_order_acquire); }

bool Runtime::forked() noexcept { return forked_child.load(std::memory_order_relaxed); }

void Runtime::check_not_forked(const char* what) {
  if (forked()) {
    throw Error(ErrorCode::kFork, "", std::string("cannot ") + what + kForkedProcess);
  }
}

std::shared_lock<std::shared_mutex> Runtime::stay_open(const char* what) {
  check_not_forked(what);
  // Check before locking too: a shared mutex prefers its shared holders, so threads that keep
  // coming could block shut_down() forever.
  std::shared_lock lock(lifetime_, std::defer_lock);
  if (!shut_down_.load()) {
    lock.lock();
  }
  if (shut_down_.load()) {
    throw Error(ErrorCode::kShutdown, "",
                std::string("cannot ") + what + ": the runtime is shut down");
  }
  return lock;
}

Compiled Runtime::compile(CompileRequest request) {
  const std::shared_lock lock = stay_open("compile");
  const PluginScope plugin_scope;
  destroy_idle_programs();
  request.signature.marks_donation = marks_donation(request.code);
  Compiled compiled;
  CompileStatistics& statistics = compiled.statistics;
  const auto start = std::chrono::steady_clock::now();
  pjrt::LoadedExecutable executable =
      client_->compile(request.code, request.format,
                       pjrt::serialize_compile_options(request.overrides, request.base_options));
  statistics.seconds = seconds_since(start);
  const bool is_needed =
      request.keeps_serialized || request.route.route != RouteRequest::Route::kPjrt;
  std::string serialized = is_needed ? executable.serialize() : std::string();
  statistics.memory = executable.memory_statistics(serialized);
  statistics.flops = executable.flops();
  if (const auto optimized = executable.optimized_program()) {
    statistics.instructions = optimized->num_instructions();
    if (const auto input_types = optimized->input_types()) {
      check_inputs(*input_types, request.signature);
    }
  }
  compiled.program = add_program(std::move(executable), request, serialized);
  if (request.keeps_serialized) {
    compiled.serialized = std::move(serialized);
  }
  return compiled;
}

Compiled Runtime::load_compiled(CompileRequest request) {
  const std::shared_lock lock = stay_open("load a compiled program");
  const PluginScope plugin_scope;
  destroy_idle_programs();
  Compiled compiled;
  const auto start = std::chrono::steady_clock::now();
  pjrt::LoadedExecutable executable = client_->deserialize(request.code);
  compiled.statistics.seconds = seconds_since(start);
  // Pass the caller's bytes on: serializing again would omit what the direct route reads.
  compiled.program = add_program(std::move(executable), request, request.code);
  return compiled;
}

ProgramReference Runtime::add_program(pjrt::LoadedExecutable executable, CompileRequest& request,
                                      const std::string& serialized) {
  auto program = std::make_unique<Program>(*client_, capabilities_, std::move(executable),
                                           std::move(request.signature));
  choose_route(*program, request.route, serialized);
  const std::lock_guard programs_lock(programs_mutex_);
  dropped_.reserve(programs_.size() + dropped_.size() + 1);  // so that drop() never allocates
  programs_.push_back(program.get());
  return ProgramReference(program.release());
}

void Runtime::choose_route(Program& program, const RouteRequest& request,
                           const std::string& serialized) {
  if (request.route == RouteRequest::Route::kPjrt) {
    program.set_route_reason(request.reason);
    return;
  }
  std::string reason = direct_route_.plugin_refusal(request.may_fork);
  if (reason.empty()) {
    try {
      DirectProgram opened = direct_route_.open(serialized, program.signature(),
                                                program.executable(), request.may_fork);
      program.set_direct(std::move(opened.executable), opened.is_short);
      program.set_route_reason(request.reason);
      return;
    } catch (const direct::Refusal& refusal) {
      reason = refusal.what();
    }
    try {
      program.set_facts(direct::read_facts(serialized));
    } catch (const direct::Refusal&) {
      // Facts are optional.
    }
  }
  if (request.route == RouteRequest::Route::kDirect) {
    throw Error(ErrorCode::kUnsupported, "",
                "the program " + program.signature().name + " cannot be called directly: " +
                    reason + "; leave route to 'auto' to run it through PJRT");
  }
  program.set_route_reason(std::move(reason));
}

pjrt::DeviceDescription Runtime::describe_device() {
  const std::shared_lock lock = stay_open("describe the device");
  const PluginScope plugin_scope;
  return pjrt::describe_device(plugin_.api(), client_->get());
}

std::string Runtime::direct_refusal(bool may_fork) {
  const std::shared_lock lock = stay_open("try the direct route");
  const PluginScope plugin_scope;
  return direct_route_.plugin_refusal(may_fork);
}

std::string Runtime::serialize(const Program& program) {
  const std::shared_lock lock = stay_open("serialize a program");
  const PluginScope plugin_scope;
  return program.executable().serialize();
}

pjrt::FfiRegistration Runtime::register_ffi_handler(const std::string& target,
                                                    const std::string& platform, void* handler) {
  const std::shared_lock lock = stay_open("register a custom-call target");
  const PluginScope plugin_scope;
  return ffi_registry_.register_handler(target, platform, handler);
}

void Runtime::register_gpu_custom_call(const std::string& target, const pjrt::GpuHandler& handler) {
  const std::shared_lock lock = stay_open("register a custom-call target");
  const PluginScope plugin_scope;
  pjrt::register_gpu_custom_call(plugin_.api(), target, handler);
}

void Runtime::drop(Program& program) noexcept {
  if (forked()) {
    return;  // a forked child must not touch the plugin's objects
  }
  program.begin_close(Program::State::kDropped);
  const PluginScope plugin_scope;
  const std::shared_lock lock(lifetime_);
  {
    const std::lock_guard programs_lock(programs_mutex_);
    std::erase(programs_, &program);
    dropped_.push_back(&program);
    note_waiting_programs();
    // Under the lock, so that the flags of the program's calls are not read before the fence.
    heavy_fence();
  }
  destroy_idle_programs();
}

void Runtime::destroy_dropped() noexcept {
  if (forked()) {
    return;  // as in drop()
  }
  const PluginScope plugin_scope;
  Runtime& runtime = *get();
  const std::shared_lock lock(runtime.lifetime_);
  runtime.destroy_idle_programs();
}

// Requires programs_mutex_.
void Runtime::note_waiting_programs() noexcept {
  std::uint64_t bits = 0;
  for (const Program* program : dropped_) {
    bits |= bit_of(program);
  }
  waiting_programs.store(bits, std::memory_order_relaxed);
}

void Runtime::destroy_idle_programs() noexcept {
  while (true) {
    std::unique_lock lock(programs_mutex_);
    const auto found = std::find_if(dropped_.begin(), dropped_.end(),
                                    [](Program* program) { return !program->in_use(); });
    if (found == dropped_.end()) {
      return;
    }
    const Program* idle = *found;
    dropped_.erase(found);
    note_waiting_programs();
    lock.unlock();
    delete idle;
  }
}

// Closes every program whose calls have ended. Returns whether others remain.
bool Runtime::close_idle_programs() noexcept {
  const std::lock_guard lock(programs_mutex_);
  std::erase_if(programs_, [](Program* program) {
    const bool idle = !program->in_use();
    if (idle) {
      program->close();
    }
    return idle;
  });
  std::erase_if(dropped_, [](Program* program) {
    const bool idle = !program->in_use();
    if (idle) {
      delete program;
    }
    return idle;
  });
  note_waiting_programs();
  return !programs_.empty() || !dropped_.empty();
}

void Runtime::shut_down() noexcept {
  Runtime* runtime = get();
  if (runtime == nullptr || forked()) {
    return;
  }
  const PluginScope plugin_scope;
  const std::lock_guard only_one(runtime->shut_down_mutex_);
  runtime->shut_down_ = true;
  {
    const std::unique_lock lock(runtime->lifetime_);
    const std::lock_guard programs_lock(runtime->programs_mutex_);
    for (Program* program : runtime->programs_) {
      program->begin_close(Program::State::kShutDown);
    }
    heavy_fence();
  }
  // Without lifetime_, because a call in flight may itself release programs. Polling costs the
  // callers nothing.
  while (runtime->close_idle_programs()) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  const std::unique_lock lock(runtime->lifetime_);
  runtime->client_.reset();
}

}  // namespace cyxla::runtime

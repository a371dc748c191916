// SPDX-License-Identifier: Apache-2.0
#include "runtime/program.h"

#include <algorithm>
#include <bit>
#include <new>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/plugin_scope.h"
#include "runtime/thread_slot.h"

namespace cyxla::runtime {
namespace {

// `noun` is "input" or "output".
void check_types(const std::string& noun, const std::vector<pjrt::ValueType>& compiled,
                 const std::vector<ArrayType>& declared, const std::string& name) {
  if (compiled.size() != declared.size()) {
    throw Error(ErrorCode::kCompile, "",
                "the compiled program " + name + " has " + counted(compiled.size(), noun) +
                    ", but its signature declares " + std::to_string(declared.size()) +
                    "; lower the function again");
  }
  for (std::size_t i = 0; i < compiled.size(); ++i) {
    const ArrayType type{compiled[i].element_type, compiled[i].dimensions};
    if (type.element_type != declared[i].element_type ||
        type.dimensions != declared[i].dimensions) {
      std::string message = noun;
      message += " " + std::to_string(i) + " of the compiled program " + name + " is " +
                 type.text() + ", but its signature declares " + declared[i].text() +
                 "; lower the function again";
      throw Error(ErrorCode::kCompile, "", message);
    }
  }
}

}  // namespace

void check_inputs(const std::vector<pjrt::ValueType>& compiled, const Signature& signature) {
  std::vector<ArrayType> declared = signature.inputs;
  for (const std::size_t output : signature.in_place_outputs) {
    declared.push_back(signature.outputs[output]);
  }
  check_types("input", compiled, declared, signature.name);
}

Program::Program(const pjrt::Client& client, Capabilities capabilities,
                 pjrt::LoadedExecutable executable, Signature signature)
    : client_(client),
      capabilities_(capabilities),
      executable_(std::move(executable)),
      signature_(std::move(signature)) {
  check_types("output", executable_.output_types(), signature_.outputs, signature_.name);
  fill_spec();
}

Program::~Program() = default;

void Program::set_direct(std::unique_ptr<direct::Executable> executable, bool is_short) noexcept {
  direct_ = std::move(executable);
  is_short_ = is_short;
  spec_.route = CYXLA_ROUTE_DIRECT;
}

Program::SpecArrays::SpecArrays(const std::vector<ArrayType>& arrays,
                                const std::vector<std::string>& array_names) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    types.push_back(arrays[i].element_type);
    elements.push_back(arrays[i].num_elements());
    bytes.push_back(arrays[i].size_bytes());
    ranks.push_back(arrays[i].dimensions.size());
    dimensions.push_back(arrays[i].dimensions.data());
    names.push_back(i < array_names.size() ? array_names[i].c_str() : "");
  }
}

void Program::fill_spec() {
  input_arrays_ = SpecArrays(signature_.inputs, signature_.input_names);
  output_arrays_ = SpecArrays(signature_.outputs, signature_.output_names);
  spec_.struct_size = sizeof spec_;
  spec_.flags = signature_.needs_python ? CYXLA_NEEDS_PYTHON : 0;
  spec_.num_inputs = signature_.inputs.size();
  spec_.num_outputs = signature_.outputs.size();
  spec_.impl = this;
  spec_.input_types = input_arrays_.types.data();
  spec_.input_elements = input_arrays_.elements.data();
  spec_.input_bytes = input_arrays_.bytes.data();
  spec_.output_types = output_arrays_.types.data();
  spec_.output_elements = output_arrays_.elements.data();
  spec_.output_bytes = output_arrays_.bytes.data();
  spec_.input_ranks = input_arrays_.ranks.data();
  spec_.output_ranks = output_arrays_.ranks.data();
  spec_.input_dimensions = input_arrays_.dimensions.data();
  spec_.output_dimensions = output_arrays_.dimensions.data();
  spec_.input_names = input_arrays_.names.data();
  spec_.output_names = output_arrays_.names.data();
  spec_.name = signature_.name.c_str();
}

Program::Release Program::release_spec() noexcept {
  std::uint64_t references = references_.load(std::memory_order_relaxed);
  do {
    if (references % kOwner == 0) {
      return Release::kNotRetained;
    }
  } while (!references_.compare_exchange_weak(references, references - 1, std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
  return references == 1 ? Release::kWasLast : Release::kOthersRemain;
}

std::atomic<Context*>* Program::slot_entry(std::size_t slot, bool create) {
  // Segment k has kFirstSegment * 2^k entries, so it starts at slot kFirstSegment * (2^k - 1).
  const std::size_t power = std::bit_floor(slot / kFirstSegment + 1);
  const auto k = static_cast<std::size_t>(std::countr_zero(power));
  const std::size_t offset = slot - kFirstSegment * (power - 1);
  std::atomic<Context*>* segment = segments_[k].load(std::memory_order_acquire);
  if (segment == nullptr) {
    if (!create) {
      return nullptr;
    }
    owned_segments_.push_back(std::make_unique<std::atomic<Context*>[]>(kFirstSegment * power));
    segment = owned_segments_.back().get();
    segments_[k].store(segment, std::memory_order_release);
  }
  return segment + offset;
}

Context* Program::thread_context() noexcept {
  const std::size_t slot = thread_slot();
  if (slot == kNoThreadSlot) {
    return nullptr;
  }
  const std::atomic<Context*>* entry = slot_entry(slot, false);
  Context* found = entry == nullptr ? nullptr : entry->load(std::memory_order_acquire);
  if (found != nullptr) {
    return found;
  }
  Context* made = make_context();
  if (made == nullptr) {
    return nullptr;
  }
  try {
    const std::lock_guard lock(mutex_);
    slot_entry(slot, true)->store(made, std::memory_order_release);
    return made;
  } catch (const std::bad_alloc&) {
    drop_context(made);
    return nullptr;
  }
}

Context* Program::make_context() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (state() != State::kOpen) {
      return nullptr;
    }
    auto context = std::make_unique<Context>();
    if (direct_ != nullptr) {
      context->direct.emplace(*direct_);
    } else {
      context->pjrt.emplace(client_, capabilities_, signature_, executable_);
    }
    contexts_.push_back(std::move(context));
    return contexts_.back().get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void Program::drop_context(Context* context) noexcept {
  const PluginScope plugin_scope;
  // Destroyed under the lock, so that close(), and with it the destruction of the client, waits for
  // the context's buffers.
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(contexts_.begin(), contexts_.end(),
                                  [&](const auto& owned) { return owned.get() == context; });
  if (found != contexts_.end()) {
    contexts_.erase(found);
  }
}

void Program::begin_close(State state) noexcept {
  // Under the lock, so that a context made meanwhile is either seen by in_use() or sees this state.
  const std::lock_guard lock(mutex_);
  state_.store(state, std::memory_order_release);
}

bool Program::in_use() noexcept {
  const std::lock_guard lock(mutex_);
  return std::any_of(contexts_.begin(), contexts_.end(), [](const auto& context) {
    return context->in_use.load(std::memory_order_acquire);
  });
}

void Program::close() noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& context : contexts_) {
    if (context->pjrt) {
      context->pjrt->close();
    }
  }
  executable_.reset();
}

}  // namespace cyxla::runtime

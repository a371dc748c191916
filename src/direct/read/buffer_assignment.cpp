// SPDX-License-Identifier: Apache-2.0
#include "direct/read/buffer_assignment.h"

#include <string>
#include <utility>

#include "direct/read/tables.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

Location read_location(std::string_view bytes) {
  const Message<proto::kLocation> location(bytes, "the location of a buffer");
  return {location.number("instruction_id"), location.numbers("shape_index")};
}

}  // namespace

BufferAssignment::BufferAssignment(std::string_view bytes) {
  const Message<proto::kBufferAssignment> message(bytes, "the buffer assignment");
  message.for_each("logical_buffers", [this](std::string_view one) { read_buffer(one); });
  message.for_each("buffer_aliases", [this](std::string_view one) { read_alias(one); });
  message.for_each("buffer_allocations", [this](std::string_view one) { read_allocation(one); });
}

void BufferAssignment::read_buffer(std::string_view bytes) {
  const Message<proto::kLogicalBuffer> message(bytes, "a buffer");
  const std::uint64_t id = message.number("id");
  Buffer buffer{.defined_at = read_location(message.bytes("defined_at")),
                .size_bytes = message.number("size")};
  buffers_at_[buffer.defined_at].push_back(id);
  if (!buffers_.emplace(id, std::move(buffer)).second) {
    throw Refusal(Reason::kMalformed, "two buffers have the number " + std::to_string(id));
  }
}

void BufferAssignment::read_alias(std::string_view bytes) {
  const Message<proto::kBufferAlias> alias(bytes, "an alias of a buffer");
  buffers_at_[read_location(alias.bytes("location"))].push_back(alias.number("source_buffer_id"));
}

void BufferAssignment::read_allocation(std::string_view bytes) {
  const Message<proto::kBufferAllocation> message(bytes, "a buffer allocation");
  Allocation allocation{.size_bytes = message.number("size"),
                        .is_thread_local = message.flag("is_thread_local"),
                        .is_tuple = message.flag("is_tuple"),
                        .is_constant = message.flag("is_constant"),
                        .is_live_out = message.flag("maybe_live_out"),
                        .is_aliased = message.flag("is_parameter_aliased_with_output"),
                        .is_input = message.flag("is_entry_computation_parameter"),
                        .input_number = message.number("parameter_number")};
  if (message.number("index") != allocations_.size()) {
    throw Refusal(Reason::kMalformed, "the buffer allocations are not numbered consecutively");
  }
  message.for_each("assigned",
                   [&](std::string_view assigned) { read_assigned(assigned, allocation); });
  allocations_.push_back(std::move(allocation));
}

void BufferAssignment::read_assigned(std::string_view bytes, Allocation& allocation) {
  const Message<proto::kAssigned> assigned(bytes, "an assigned buffer");
  const std::uint64_t id = assigned.number("logical_buffer_id");
  const BufferSlice slice{allocations_.size(), assigned.number("offset"), assigned.number("size")};
  const auto found = buffers_.find(id);
  if (found == buffers_.end() || found->second.slice) {
    throw Refusal(Reason::kMalformed,
                  "buffer " + std::to_string(id) + " is not assigned to one allocation");
  }
  if (slice.size_bytes != found->second.size_bytes || slice.offset > allocation.size_bytes ||
      slice.size_bytes > allocation.size_bytes - slice.offset) {
    throw Refusal(Reason::kMalformed,
                  "buffer " + std::to_string(id) + " does not fit its allocation");
  }
  found->second.slice = slice;
  allocation.buffers.push_back(id);
}

const Location& BufferAssignment::definition(std::uint64_t buffer) const {
  return buffers_.at(buffer).defined_at;  // ids come from allocations, which were checked
}

std::optional<BufferSlice> BufferAssignment::slice(const Location& location) const {
  const auto found = buffers_at_.find(location);
  if (found == buffers_at_.end()) {
    return std::nullopt;
  }
  std::optional<BufferSlice> slice;
  for (const std::uint64_t id : found->second) {
    const auto buffer = buffers_.find(id);
    if (buffer == buffers_.end() || !buffer->second.slice ||
        (slice && *slice != *buffer->second.slice)) {
      throw Refusal(Reason::kBufferLayout,
                    "a value of the program does not have exactly one buffer");
    }
    slice = buffer->second.slice;
  }
  return slice;
}

}  // namespace cyxla::direct

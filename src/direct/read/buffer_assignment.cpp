// SPDX-License-Identifier: Apache-2.0
#include "direct/read/buffer_assignment.h"

#include <string>
#include <utility>

#include "direct/read/message.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

Location read_location(std::string_view bytes) {
  Location location;
  Message message(bytes, "the location of a buffer");
  while (message.next()) {
    switch (message.field()) {
      case 3:
        message.repeated_numbers(location.shape_index);
        break;
      case 4:
        location.instruction = message.number();
        break;
      default:
        message.refuse_unknown();
    }
  }
  return location;
}

}  // namespace

BufferAssignment::BufferAssignment(std::string_view bytes) {
  // Allocations and aliases name buffers, which may come after them.
  std::vector<std::string_view> aliases;
  std::vector<std::string_view> allocations;
  Message message(bytes, "the buffer assignment");
  while (message.next()) {
    switch (message.field()) {
      case 1:  // logical_buffers
        read_buffer(message.repeated_bytes());
        break;
      case 2:  // buffer_aliases
        aliases.push_back(message.repeated_bytes());
        break;
      case 3:  // buffer_allocations
        allocations.push_back(message.repeated_bytes());
        break;
      case 4:  // heap_simulator_traces
      case 5:  // the values of each buffer once more
        message.ignore_bytes();
        break;
      default:
        message.refuse_unknown();
    }
  }
  for (const std::string_view alias : aliases) {
    read_alias(alias);
  }
  for (const std::string_view allocation : allocations) {
    read_allocation(allocation);
  }
}

void BufferAssignment::read_buffer(std::string_view bytes) {
  Buffer buffer;
  std::uint64_t id = 0;
  Message message(bytes, "a buffer");
  while (message.next()) {
    switch (message.field()) {
      case 1:
        id = message.number();
        break;
      case 2:
        buffer.size_bytes = message.number();
        break;
      case 3:
        buffer.defined_at = read_location(message.bytes());
        break;
      case 4:  // color
        if (message.number() != 0) {
          throw Refusal("a buffer lies in a memory space of its own");
        }
        break;
      default:
        message.refuse_unknown();
    }
  }
  buffers_at_[buffer.defined_at].push_back(id);
  if (!buffers_.emplace(id, std::move(buffer)).second) {
    throw Refusal("two buffers have the number " + std::to_string(id));
  }
}

void BufferAssignment::read_alias(std::string_view bytes) {
  std::uint64_t source = 0;
  Location location;
  Message message(bytes, "an alias of a buffer");
  while (message.next()) {
    switch (message.field()) {
      case 1:
        source = message.number();
        break;
      case 2:
        location = read_location(message.bytes());
        break;
      default:
        message.refuse_unknown();
    }
  }
  buffers_at_[std::move(location)].push_back(source);
}

void BufferAssignment::read_allocation(std::string_view bytes) {
  Allocation allocation;
  std::uint64_t index = 0;
  std::vector<std::string_view> assigned;
  Message message(bytes, "a buffer allocation");
  while (message.next()) {
    switch (message.field()) {
      case 1:
        index = message.number();
        break;
      case 2:
        allocation.size_bytes = message.number();
        break;
      case 3:
        allocation.is_thread_local = message.flag();
        break;
      case 5:
        allocation.is_input = message.flag();
        break;
      case 6:
        allocation.input_number = message.number();
        break;
      case 7:
        allocation.is_live_out = message.flag();
        break;
      case 8:  // color
        if (message.number() != 0) {
          throw Refusal("a buffer allocation lies in a memory space of its own");
        }
        break;
      case 9:
        assigned.push_back(message.repeated_bytes());
        break;
      case 10:  // parameter_shape_index
        throw Refusal("an input of the program is a tuple");
      case 11:
        allocation.is_tuple = message.flag();
        break;
      case 12:
        allocation.is_constant = message.flag();
        break;
      case 13:
        allocation.is_aliased = message.flag();
        break;
      default:
        message.refuse_unknown();
    }
  }
  if (index != allocations_.size()) {
    throw Refusal("the buffer allocations are not numbered one by one");
  }
  for (const std::string_view one : assigned) {
    read_assigned(one, allocation);
  }
  allocations_.push_back(std::move(allocation));
}

void BufferAssignment::read_assigned(std::string_view bytes, Allocation& allocation) {
  std::uint64_t id = 0;
  Place place{.allocation = allocations_.size()};
  Message message(bytes, "an assigned buffer");
  while (message.next()) {
    switch (message.field()) {
      case 1:
        id = message.number();
        break;
      case 2:
        place.offset = message.number();
        break;
      case 3:
        place.size_bytes = message.number();
        break;
      case 4:  // element_type
        message.ignore_number();
        break;
      default:
        message.refuse_unknown();
    }
  }
  const auto found = buffers_.find(id);
  if (found == buffers_.end() || found->second.place) {
    throw Refusal("buffer " + std::to_string(id) + " is not assigned to one allocation");
  }
  if (place.size_bytes != found->second.size_bytes || place.offset > allocation.size_bytes ||
      place.size_bytes > allocation.size_bytes - place.offset) {
    throw Refusal("buffer " + std::to_string(id) + " does not fit its allocation");
  }
  found->second.place = place;
  allocation.buffers.push_back(id);
}

const Location& BufferAssignment::definition(std::uint64_t buffer) const {
  return buffers_.at(buffer).defined_at;  // ids come from allocations, which were checked
}

std::optional<Place> BufferAssignment::place(const Location& location) const {
  const auto found = buffers_at_.find(location);
  if (found == buffers_at_.end()) {
    return std::nullopt;
  }
  std::optional<Place> place;
  for (const std::uint64_t id : found->second) {
    const auto buffer = buffers_.find(id);
    if (buffer == buffers_.end() || !buffer->second.place ||
        (place && *place != *buffer->second.place)) {
      throw Refusal("a value of the program has no single place in memory");
    }
    place = buffer->second.place;
  }
  return place;
}

}  // namespace cyxla::direct

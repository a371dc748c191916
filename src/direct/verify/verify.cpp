// SPDX-License-Identifier: Apache-2.0
#include "direct/verify/verify.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "direct/verify/unreached.h"
#include "pjrt/element_type.h"

namespace cyxla::direct {
namespace {

// Breaks the kernels' alignment and keeps that of every element type.
constexpr std::size_t kShift = 16;
// The outputs' bytes before a run, so that bytes that only one route writes differ.
constexpr int kUnwritten = 0x5a;
constexpr int kUnexpected = 0xa5;

void* address_in(const AlignedMemory& memory, bool is_aligned) noexcept {
  return static_cast<std::byte*>(memory.get()) + (is_aligned ? 0 : kShift);
}

std::string hexadecimal(const std::byte* bytes, std::size_t size_bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size_bytes; ++i) {
    text += kDigits[std::to_integer<unsigned>(bytes[i]) >> 4];
    text += kDigits[std::to_integer<unsigned>(bytes[i]) & 15];
  }
  return text;
}

}  // namespace

const std::array<Verification::Set, 8> Verification::kSets = {{
    {"numbers", Values::kNumbers, true},
    {"numbers in unaligned memory", Values::kNumbers, false},
    {"positive numbers", Values::kPositiveNumbers, true},
    {"zeros", Values::kZeros, true},
    {"infinite numbers and NaN", Values::kSpecial, true},
    {"infinite numbers and NaN in unaligned memory", Values::kSpecial, false},
    {"infinite numbers and NaN", Values::kSpecial, true},
    {"subnormal numbers", Values::kSubnormal, true},
}};

Verification::Verification(const Executable& executable, std::vector<std::int32_t> input_types)
    : executable_(executable),
      input_types_(std::move(input_types)),
      num_branches_(max_branches(executable.plan().steps)) {
  for (std::size_t i = 0; i < executable.num_inputs(); ++i) {
    const std::size_t itemsize = std::max<std::size_t>(pjrt::itemsize(input_types_[i]), 1);
    input_memory_.push_back(make_aligned(executable.input_bytes(i) + kShift));
    inputs_.push_back({nullptr, input_types_[i], executable.input_bytes(i) / itemsize});
  }
  for (std::size_t i = 0; i < executable.num_outputs(); ++i) {
    output_memory_.push_back(make_aligned(executable.output_bytes(i) + kShift));
    expected_memory_.push_back(make_aligned(executable.output_bytes(i) + kShift));
  }
  outputs_.resize(executable.num_outputs());
  expected_.resize(executable.num_outputs());
}

bool Verification::wants(const Set& set) const noexcept {
  return !executable_.plan().has_unbounded_loop || set.values == Values::kNumbers ||
         set.values == Values::kPositiveNumbers;
}

void Verification::fill_input(const Set& set, std::size_t input, void* data) const noexcept {
  const std::size_t size_bytes = executable_.input_bytes(input);
  if (set.variation) {
    fill_varied(data, size_bytes, input_types_[input], *set.variation, num_branches_,
                std::uint64_t{kSets.size() + *set.variation} << 32 | input);
    return;
  }
  const auto number = static_cast<std::uint64_t>(&set - kSets.data());
  fill(data, size_bytes, input_types_[input], set.values, number << 32 | input);
}

void Verification::prepare(const Set& set) noexcept {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    void* data = address_in(input_memory_[i], set.is_aligned);
    fill_input(set, i, data);
    inputs_[i].data = data;
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i] = address_in(output_memory_[i], set.is_aligned);
    expected_[i] = address_in(expected_memory_[i], true);
    std::memset(outputs_[i], kUnwritten, executable_.output_bytes(i));
    std::memset(expected_[i], kUnexpected, executable_.output_bytes(i));
  }
}

bool Verification::has_changed_inputs(const Set& set) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    std::vector<std::byte> original(executable_.input_bytes(i));
    fill_input(set, i, original.data());
    if (!original.empty() && std::memcmp(original.data(), inputs_[i].data, original.size()) != 0) {
      return true;
    }
  }
  return false;
}

bool Verification::run(Context& context) {
  return std::all_of(kSets.begin(), kSets.end(), [&](const Set& set) {
    if (!wants(set)) {
      return true;
    }
    prepare(set);
    return context.run(inputs_.data(), outputs_.data());
  });
}

std::string Verification::compare(Context& context, const Reference& reference) {
  for (const Set& set : kSets) {
    if (!wants(set)) {
      continue;
    }
    if (std::string reason = compare(set, context, reference); !reason.empty()) {
      return reason;
    }
  }
  return {};
}

bool Verification::run_variation(Context& context, std::size_t variation) {
  prepare(varied(variation));
  return context.run(inputs_.data(), outputs_.data());
}

std::string Verification::compare_variation(Context& context, const Reference& reference,
                                            std::size_t variation) {
  return compare(varied(variation), context, reference);
}

std::string Verification::compare(const Set& set, Context& context, const Reference& reference) {
  prepare(set);
  if (!reference(inputs_.data(), expected_.data())) {
    return std::string("the plugin failed to run the program for ") + set.name;
  }
  if (!context.run(inputs_.data(), outputs_.data())) {
    return std::string("a kernel failed when called directly for ") + set.name;
  }
  if (has_changed_inputs(set)) {
    return std::string("a kernel writes to an input for ") + set.name;
  }
  return difference(set);
}

std::string Verification::difference(const Set& set) const {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto* found = static_cast<const std::byte*>(outputs_[i]);
    const auto* wanted = static_cast<const std::byte*>(expected_[i]);
    const std::size_t size_bytes = executable_.output_bytes(i);
    const auto position =
        static_cast<std::size_t>(std::mismatch(found, found + size_bytes, wanted).first - found);
    if (position < size_bytes) {
      const std::size_t begin = position / 8 * 8;
      const std::size_t length = std::min<std::size_t>(size_bytes - begin, 8);
      return "output " + std::to_string(i) + " differs from the plugin's for " + set.name +
             ": bytes " + hexadecimal(found + begin, length) + " instead of " +
             hexadecimal(wanted + begin, length) + " at offset " + std::to_string(begin);
    }
  }
  return {};
}

}  // namespace cyxla::direct

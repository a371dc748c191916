// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cyxla::fuzz {

// Corrupts a protobuf message deep inside: descends to a field of some message in it, drops,
// repeats, swaps or changes it, and updates every length above it. Damages object files in their
// tables. Used by one thread.
class Mutator {
 public:
  // Corrupts unstructured bytes; may change their number.
  using MutateBytes = std::function<void(std::string&)>;

  Mutator(unsigned seed, MutateBytes mutate_bytes)
      : random_(seed), mutate_bytes_(std::move(mutate_bytes)) {}

  std::string mutate(std::string_view message);

 private:
  struct Field;
  std::size_t below(std::size_t end);
  bool one_in(std::size_t number) { return below(number) == 0; }
  std::uint64_t number(std::uint64_t near);

  std::string mutate_content(std::string_view bytes, int depth);
  std::string mutate_object(std::string object);
  std::size_t choose(const std::vector<Field>& fields);
  void damage(std::vector<Field>& fields, std::size_t index);
  void change(Field& field);

  std::minstd_rand random_;
  MutateBytes mutate_bytes_;
};

}  // namespace cyxla::fuzz

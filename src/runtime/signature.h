// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cyxla::runtime {

// Element type and dimensions of one input or output.
struct ArrayType {
  std::int32_t element_type = 0;
  std::vector<std::int64_t> dimensions;

  // Throws Error (kCompile) when the element type has no whole bytes or the size does not fit.
  std::size_t num_elements() const;
  std::size_t size_bytes() const;
  std::string text() const;  // "f32[3,4]"
};

// What a program is called, takes and gives, as its lowering declared it.
struct Signature {
  std::string name;
  std::vector<ArrayType> inputs;
  std::vector<ArrayType> outputs;
  // Paths in the arguments and results of the Python function, in UTF-8: one for each array, or
  // none where they are not known.
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  bool needs_python = false;
  bool marks_donation = false;  // the compiled code allows an input to be donated
  // Outputs for which the compiled code takes a destination: a donated argument after the inputs.
  std::vector<std::size_t> in_place_outputs;
  // What the program's host callbacks need, owned by the program's copy; given up when the program
  // is destroyed, on whichever thread that happens and with locks held.
  std::shared_ptr<const void> host_callbacks;
};

}  // namespace cyxla::runtime

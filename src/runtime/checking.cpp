// SPDX-License-Identifier: Apache-2.0
#include "runtime/checking.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "pjrt/element_type.h"
#include "runtime/error_log.h"

namespace cyxla::runtime {
namespace {

bool refuse_null(const cyxla_program_spec& spec, std::size_t index) noexcept {
  record_error(ErrorCode::kArgument,
               "input %zu of the program %.200s has %zu byte%s, but its data is NULL", index,
               spec.name, spec.input_bytes[index], plural(spec.input_bytes[index]));
  return false;
}

// Whether input `index` is not bool, or its bytes are all 0 or 1.
bool check_bool(const cyxla_program_spec& spec, std::size_t index, const void* data) noexcept {
  if (spec.input_types[index] != CYXLA_PRED) {
    return true;
  }
  const auto* const begin = static_cast<const unsigned char*>(data);
  const auto* const end = begin + spec.input_elements[index];
  const auto* const found = std::find_if(begin, end, [](unsigned char byte) { return byte > 1; });
  if (found == end) {
    return true;
  }
  record_error(
      ErrorCode::kArgument,
      "input %zu of the program %.200s is bool, but element %td has the byte %d; write 0 or"
      " 1",
      index, spec.name, found - begin, int{*found});
  return false;
}

}  // namespace

bool is_checking() noexcept {
  static const bool is_on = [] {
    const char* const value = std::getenv("CYXLA_CHECK");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return is_on;
}

bool check_arguments(const cyxla_program_spec* spec, const cyxla_input* inputs,
                     void* const* outputs) noexcept {
  if (spec == nullptr) {
    record_error(ErrorCode::kArgument, "the program spec is NULL; get one from program_spec()");
    return false;
  }
  if (inputs == nullptr && spec->num_inputs > 0) {
    record_error(ErrorCode::kArgument, "the program %.200s takes %zu input%s, but `inputs` is NULL",
                 spec->name, spec->num_inputs, plural(spec->num_inputs));
    return false;
  }
  if (outputs == nullptr && spec->num_outputs > 0) {
    record_error(ErrorCode::kArgument, "the program %.200s has %zu output%s, but `outputs` is NULL",
                 spec->name, spec->num_outputs, plural(spec->num_outputs));
    return false;
  }
  for (std::size_t i = 0; i < spec->num_inputs; ++i) {
    const cyxla_input& input = inputs[i];
    if (input.element_type != spec->input_types[i]) {
      record_error(ErrorCode::kArgument,
                   "input %zu of the program %.200s must have element type %s (%d), not %s (%d)", i,
                   spec->name, pjrt::element_type_name(spec->input_types[i]), spec->input_types[i],
                   pjrt::element_type_name(input.element_type), input.element_type);
      return false;
    }
    if (input.num_elements != spec->input_elements[i]) {
      record_error(ErrorCode::kArgument,
                   "input %zu of the program %.200s must have %zu element%s, not %zu", i,
                   spec->name, spec->input_elements[i], plural(spec->input_elements[i]),
                   input.num_elements);
      return false;
    }
    if (input.data == nullptr && spec->input_bytes[i] > 0) {
      return refuse_null(*spec, i);
    }
  }
  return !is_checking() || check_bools(*spec, inputs);
}

bool check_data(const cyxla_program_spec& spec, std::size_t index, const void* data) noexcept {
  if (data == nullptr && spec.input_bytes[index] > 0) {
    return refuse_null(spec, index);
  }
  return !is_checking() || check_bool(spec, index, data);
}

bool check_bools(const cyxla_program_spec& spec, const cyxla_input* inputs) noexcept {
  for (std::size_t i = 0; i < spec.num_inputs; ++i) {
    if (!check_bool(spec, i, inputs[i].data)) {
      return false;
    }
  }
  return true;
}

}  // namespace cyxla::runtime

// SPDX-License-Identifier: Apache-2.0
#include <complex>
#include <cstring>

#include "program.h"

namespace fake_plugin {
namespace {

template <typename Element>
Element load(const void* array, std::size_t index) noexcept {
  Element element = {};
  std::memcpy(&element, static_cast<const char*>(array) + index * sizeof element, sizeof element);
  return element;
}

template <typename Element>
void store(void* array, std::size_t index, Element element) noexcept {
  std::memcpy(static_cast<char*>(array) + index * sizeof element, &element, sizeof element);
}

// std::complex<float> has only a constructor from float.
template <typename Element>
Element from_double(double number) noexcept {
  if constexpr (std::is_same_v<Element, std::complex<float>>) {
    return {static_cast<float>(number), 0.0F};
  } else {
    return static_cast<Element>(number);
  }
}

template <typename Element>
void evaluate_as(const Program& program, const Output& output, const void* const* inputs,
                 void* result) noexcept {
  const std::size_t num_elements = output.type.num_elements();
  const auto number = from_double<Element>(output.number);
  if (output.operation == Operation::kSum) {
    Element total = {};
    for (std::size_t i = 0; i < program.inputs[output.left].num_elements(); ++i) {
      total = static_cast<Element>(total + load<Element>(inputs[output.left], i));
    }
    store(result, 0, total);
    return;
  }
  for (std::size_t i = 0; i < num_elements; ++i) {
    Element element = number;
    if (output.operation == Operation::kScale) {
      element = static_cast<Element>(load<Element>(inputs[output.left], i) * number);
    } else if (output.operation == Operation::kAdd) {
      element = static_cast<Element>(load<Element>(inputs[output.left], i) +
                                     load<Element>(inputs[output.right], i));
    } else if (output.operation == Operation::kIota) {
      element = from_double<Element>(static_cast<double>(i));
    }
    store(result, i, element);
  }
}

}  // namespace

void evaluate(const Program& program, const Output& output, const void* const* inputs,
              void* result) noexcept {
  if (output.operation == Operation::kCopy) {
    if (const std::size_t size_bytes = output.type.size_bytes(); size_bytes != 0) {
      std::memcpy(result, inputs[output.left], size_bytes);
    }
    return;
  }
  switch (output.type.element_type) {
    case PJRT_Buffer_Type_PRED:
      return evaluate_as<bool>(program, output, inputs, result);
    case PJRT_Buffer_Type_S8:
      return evaluate_as<std::int8_t>(program, output, inputs, result);
    case PJRT_Buffer_Type_S16:
      return evaluate_as<std::int16_t>(program, output, inputs, result);
    case PJRT_Buffer_Type_S32:
      return evaluate_as<std::int32_t>(program, output, inputs, result);
    case PJRT_Buffer_Type_S64:
      return evaluate_as<std::int64_t>(program, output, inputs, result);
    case PJRT_Buffer_Type_U8:
      return evaluate_as<std::uint8_t>(program, output, inputs, result);
    case PJRT_Buffer_Type_U16:
      return evaluate_as<std::uint16_t>(program, output, inputs, result);
    case PJRT_Buffer_Type_U32:
      return evaluate_as<std::uint32_t>(program, output, inputs, result);
    case PJRT_Buffer_Type_U64:
      return evaluate_as<std::uint64_t>(program, output, inputs, result);
    case PJRT_Buffer_Type_F32:
      return evaluate_as<float>(program, output, inputs, result);
    case PJRT_Buffer_Type_F64:
      return evaluate_as<double>(program, output, inputs, result);
    case PJRT_Buffer_Type_C64:
      return evaluate_as<std::complex<float>>(program, output, inputs, result);
    case PJRT_Buffer_Type_C128:
      return evaluate_as<std::complex<double>>(program, output, inputs, result);
    default:
      return;  // the parser rejects all others
  }
}

}  // namespace fake_plugin

// SPDX-License-Identifier: Apache-2.0
#include "runtime/signature.h"

#include <limits>

#include "base/error.h"
#include "pjrt/element_type.h"

namespace cyxla::runtime {
namespace {

std::size_t checked_product(std::size_t left, std::size_t right, const ArrayType& type) {
  if (right != 0 && left > std::numeric_limits<std::size_t>::max() / right) {
    throw Error(ErrorCode::kCompile, "", type.text() + " is larger than the address space");
  }
  return left * right;
}

}  // namespace

std::size_t ArrayType::num_elements() const {
  std::size_t product = 1;
  for (const std::int64_t dimension : dimensions) {
    if (dimension < 0) {
      throw Error(ErrorCode::kCompile, "", text() + " has a negative dimension");
    }
    product = checked_product(product, static_cast<std::size_t>(dimension), *this);
  }
  return product;
}

std::size_t ArrayType::size_bytes() const {
  const std::size_t itemsize = pjrt::itemsize(element_type);
  if (itemsize == 0) {
    throw Error(ErrorCode::kCompile, "",
                text() + " has an element type that cyxla cannot pass to native code (PJRT type " +
                    std::to_string(element_type) + ")");
  }
  return checked_product(num_elements(), itemsize, *this);
}

std::string ArrayType::text() const {
  std::string result = pjrt::element_type_name(element_type);
  result += '[';
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    result += (i == 0 ? "" : ",") + std::to_string(dimensions[i]);
  }
  return result + ']';
}

}  // namespace cyxla::runtime

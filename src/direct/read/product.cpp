// SPDX-License-Identifier: Apache-2.0
#include "direct/read/product.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/wire.h"

namespace cyxla::direct {
namespace {

using Dimensions = std::vector<std::uint64_t>;

struct DotDimensions {
  Dimensions lhs_contracted, rhs_contracted, lhs_batch, rhs_batch;
};

DotDimensions read_dot_dimensions(std::string_view bytes) {
  DotDimensions dimensions;
  Dimensions* const fields[] = {&dimensions.lhs_contracted, &dimensions.rhs_contracted,
                                &dimensions.lhs_batch, &dimensions.rhs_batch};
  wire::Reader reader(bytes);
  while (auto field = reader.next()) {
    if (field->field < 1 || field->field > std::size(fields)) {
      continue;
    }
    Dimensions& values = *fields[field->field - 1];
    if (field->type == wire::Type::kVarint) {
      values.push_back(field->number);
      continue;
    }
    while (const auto value = wire::take_varint(field->bytes)) {
      values.push_back(*value);
    }
  }
  return dimensions;
}

double size_of(const Extent& array, const Dimensions& dimensions) {
  double size = 1;
  for (const std::uint64_t dimension : dimensions) {
    size *=
        dimension < array.dimensions.size() ? static_cast<double>(array.dimensions[dimension]) : 1;
  }
  return size;
}

// The elements along the other dimensions.
double rest_of(const Extent& array, double size) {
  return size == 0 ? 0 : array.num_elements / size;
}

}  // namespace

Product product_of(const Instruction& dot, const Extent& lhs, const Extent& rhs) {
  const DotDimensions dimensions = read_dot_dimensions(dot.dot_dimensions);
  Product product{.element_type = read_extent(dot.shape).element_type};
  product.batch = size_of(lhs, dimensions.lhs_batch);
  product.k = size_of(lhs, dimensions.lhs_contracted);
  product.m = rest_of(lhs, product.batch * product.k);
  product.n = rest_of(rhs, product.batch * product.k);
  const std::size_t first = dimensions.rhs_batch.size();
  const std::size_t last = std::max<std::size_t>(lhs.dimensions.size(), 1) - 1;
  product.is_lhs_transposed = dimensions.lhs_contracted != Dimensions{last};
  product.is_rhs_transposed = dimensions.rhs_contracted != Dimensions{first};
  return product;
}

}  // namespace cyxla::direct

// SPDX-License-Identifier: Apache-2.0
#include "direct/read/product.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "direct/read/tables.h"

namespace cyxla::direct {
namespace {

using Dimensions = std::vector<std::uint64_t>;

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
  const Message<proto::kDotDimensionNumbers> numbers(dot.dot_dimensions, Lenient());
  const Dimensions lhs_contracted = numbers.numbers("lhs_contracting_dimensions");
  Product product{.element_type = read_extent(dot.shape).element_type};
  product.batch = size_of(lhs, numbers.numbers("lhs_batch_dimensions"));
  product.k = size_of(lhs, lhs_contracted);
  product.m = rest_of(lhs, product.batch * product.k);
  product.n = rest_of(rhs, product.batch * product.k);
  const std::size_t first = numbers.numbers("rhs_batch_dimensions").size();
  const std::size_t last = std::max<std::size_t>(lhs.dimensions.size(), 1) - 1;
  product.is_lhs_transposed = lhs_contracted != Dimensions{last};
  product.is_rhs_transposed = numbers.numbers("rhs_contracting_dimensions") != Dimensions{first};
  return product;
}

}  // namespace cyxla::direct

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "direct/read/hlo.h"

namespace cyxla::direct {

// A `dot` of HLO as products of matrices: `batch` times m x k by k x n.
struct Product {
  ElementType element_type{};
  double batch = 1, m = 1, k = 1, n = 1;
  // Whether the contracted dimension of an operand is not that of a plain product.
  bool is_lhs_transposed = false;
  bool is_rhs_transposed = false;

  double multiplications() const noexcept { return batch * m * k * n; }
};

Product product_of(const Instruction& dot, const Extent& lhs, const Extent& rhs);

}  // namespace cyxla::direct

// SPDX-License-Identifier: Apache-2.0
#include "direct/read/step_kind.h"

namespace cyxla::direct {

const char* kind_name(std::uint32_t kind) {
  switch (kind) {
    case kCall:
      return "call";
    case kConditional:
      return "conditional";
    case kWhile:
      return "while";
    case kKernel:
      return "kernel";
    case kCopy:
      return "copy";
    default:
      return nullptr;
  }
}

const char* plugin_step(std::uint32_t kind) {
  switch (kind) {
    case 5:
      return "a sort";
    case kXnnFusion:
      return "an XNNPACK fusion";
    case kMatrixProduct:
      return "a matrix product";
    case 8:
      return "an update of the random-number state";
    case 9:
      return "a top-k";
    case 13:
      return "a Fourier transform";
    case 14:
      return "an infeed";
    case 15:
      return "an outfeed";
    case 16:
      return "a custom call";
    case 17:
      return "a convolution";
    case 18:
      return "a collective operation";
    case 19:
      return "a partition id";
    case 20:
      return "a replica id";
    case kYnnFusion:
      return "a YNNPACK fusion";
    default:
      return "of an unknown kind";
  }
}

}  // namespace cyxla::direct

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

#include <array>
#include <cstdint>
#include <string>

#include "pjrt/pjrt_header.h"
#include "runtime/references.h"
#include "runtime/runtime.h"

namespace cyxla::soak {

inline constexpr std::size_t kSize = 4;

// A program of four numbers x and its own factor: x * factor and the sum of x. With whole numbers
// both are exact in every order of computation.
struct Compiled {
  const cyxla_program_spec* spec = nullptr;
  double factor = 0;
};

inline std::string code_of(bool is_fake, int factor) {
  const std::string number = std::to_string(factor);
  if (is_fake) {
    return "input F64[4]\noutput F64[4] scale 0 " + number + "\noutput F64[] sum 0\n";
  }
  return "module @soak {\n"
         "  func.func public @main(%x: tensor<4xf64>) -> (tensor<4xf64>, tensor<f64>) {\n"
         "    %factor = stablehlo.constant dense<" +
         number +
         ".0> : tensor<4xf64>\n"
         "    %zero = stablehlo.constant dense<0.0> : tensor<f64>\n"
         "    %scaled = stablehlo.multiply %x, %factor : tensor<4xf64>\n"
         "    %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = "
         "[0]\n"
         "        : (tensor<4xf64>, tensor<f64>) -> tensor<f64>\n"
         "    return %scaled, %sum : tensor<4xf64>, tensor<f64>\n"
         "  }\n"
         "}\n";
}

inline const char* format_of(bool is_fake) { return is_fake ? "fake" : "mlir"; }

inline Compiled compile(bool is_fake, int factor, runtime::RouteRequest::Route route) {
  constexpr auto kF64 = static_cast<std::int32_t>(PJRT_Buffer_Type_F64);
  runtime::Signature signature;
  signature.name = "soak_" + std::to_string(factor);
  signature.inputs = {{kF64, {kSize}}};
  signature.outputs = {{kF64, {kSize}}, {kF64, {}}};
  const runtime::ProgramReference program =
      runtime::Runtime::get()
          ->compile({.code = code_of(is_fake, factor),
                     .format = format_of(is_fake),
                     .signature = signature,
                     .route = {route, "the soak asks for it", true}})
          .program;
  runtime::retain(&program->spec());  // released by release()
  return {&program->spec(), static_cast<double>(factor)};
}

// One caller's arrays: the input is written before each call, and every result is compared.
struct Arrays {
  alignas(CYXLA_ALIGNMENT) std::array<double, kSize> x = {};
  alignas(CYXLA_ALIGNMENT) std::array<double, kSize> scaled = {};
  alignas(CYXLA_ALIGNMENT) double sum = 0;

  void fill(std::int64_t number) noexcept {
    for (std::size_t i = 0; i < kSize; ++i) {
      x[i] = static_cast<double>((number + static_cast<std::int64_t>(i) * 7) % 4099);
    }
    scaled.fill(-1);
    sum = -1;
  }
  bool is_right(double factor) const noexcept {
    double expected = 0;
    bool right = true;
    for (std::size_t i = 0; i < kSize; ++i) {
      right = right && scaled[i] == x[i] * factor;
      expected += x[i];
    }
    return right && sum == expected;
  }
};

}  // namespace cyxla::soak

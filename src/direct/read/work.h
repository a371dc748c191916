// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "direct/read/hlo.h"

namespace cyxla::direct {

// How much a program computes is estimated from its HLO, as everything that depends on it must be
// the same in every process, on a busy machine too. The unit is an addition of one element by a
// vectorized kernel; an x86-64 CPU at 3 GHz takes 0.3 to 0.6 ns for one.
inline constexpr double kWorkPerMicrosecond = 2500;

// A call below this, of about 2 us, keeps the GIL: to give it back and take it costs far more.
inline constexpr double kShortWork = 2 * kWorkPerMicrosecond;
// A call above this, of about 20 ms, gains nothing from a direct call.
inline constexpr double kLongWork = 20'000 * kWorkPerMicrosecond;

// Arrays and computations around an instruction.
struct Surroundings {
  std::span<const Extent> operands;
  std::span<const double> called_work;  // of one run of each computation that it calls
  double trip_count = 1;                // of a loop
};

// The work of one instruction, with the computations that it calls.
double work_of(const Instruction& instruction, const Surroundings& surroundings);

}  // namespace cyxla::direct

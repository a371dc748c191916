// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "direct/read/hlo.h"

namespace cyxla::direct {

// The work of a program is estimated from its HLO and not measured, so that decisions are the same
// in every process, also on a busy machine. The unit is the addition of one element by a vectorized
// kernel; an x86-64 CPU at 3 GHz takes 0.3 to 0.6 ns for it.
inline constexpr double kWorkPerMicrosecond = 2500;

// A shorter call, of about 2 us, keeps the GIL: to release and acquire it costs far more.
inline constexpr double kShortWork = 2 * kWorkPerMicrosecond;
// A direct call of a longer program, of about 20 ms, saves nothing.
inline constexpr double kLongWork = 20'000 * kWorkPerMicrosecond;

// The arrays and computations that an instruction uses.
struct Surroundings {
  std::span<const Extent> operands;
  std::span<const double> called_work;  // for each computation that it calls, of one run
  double trip_count = 1;                // of a loop
};

// The work of one instruction and of the computations that it calls.
double work_of(const Instruction& instruction, const Surroundings& surroundings);

}  // namespace cyxla::direct

// SPDX-License-Identifier: Apache-2.0
#include "direct/verify/verify.h"

#include <gtest/gtest.h>

#if defined(CYXLA_TEST_KERNELS)

#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "direct/test_programs.h"

namespace cyxla::direct {
namespace {

using test::PlanBuilder;

constexpr std::size_t kCount = 6;
constexpr std::size_t kBytes = kCount * sizeof(double);

double flushed(double x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0, x) : x; }

// What the kernel `twice` computes, with the changes that a test plants.
struct Twice {
  std::function<double(double)> of = [](double x) { return flushed(2 * flushed(x)); };
  std::size_t written_bytes = kBytes;
  bool succeeds = true;
  int calls = 0;

  bool operator()(const cyxla_input* inputs, void* const* outputs) {
    ++calls;
    for (std::size_t i = 0; i * sizeof(double) < written_bytes; ++i) {
      const double result = of(static_cast<const double*>(inputs[0].data)[i]);
      std::memcpy(static_cast<double*>(outputs[0]) + i, &result, sizeof(result));
    }
    return succeeds;
  }
};

class VerificationTest : public ::testing::Test {
 protected:
  static Plan plan(const char* kernel) {
    PlanBuilder builder;
    const Slice in = builder.input(kBytes);
    const Slice out = builder.output(kBytes);
    return builder.finish({builder.call(kernel, {in, out})});
  }
  static std::string compare(const Plan& plan, Twice& reference) {
    const Executable executable(plan, ExternalSymbols());
    Context context(executable);
    Verification verification(executable, {CYXLA_F64});
    return verification.compare(context, std::ref(reference));
  }
  // The reason when the plugin's results are those of `of`.
  static std::string reason(std::function<double(double)> of) {
    Twice reference;
    reference.of = std::move(of);
    return compare(plan("twice"), reference);
  }
};

TEST_F(VerificationTest, FindsNothingWhereBothRoutesAgree) {
  Twice reference;
  EXPECT_EQ(compare(plan("twice"), reference), "");
  EXPECT_EQ(reference.calls, 8);
}

TEST_F(VerificationTest, FindsADifferenceOfOneBit) {
  const std::string text =
      reason([](double x) { return std::nextafter(flushed(2 * flushed(x)), 100); });
  EXPECT_EQ(text.find("output 0 differs from the plugin's for numbers: bytes "), 0U) << text;
  EXPECT_NE(text.find(" instead of "), std::string::npos) << text;
}

TEST_F(VerificationTest, FindsDifferencesOfSpecialValuesOnly) {
  const auto expect = [](const std::string& text, const std::string& set) {
    EXPECT_EQ(text.find("output 0 differs from the plugin's for " + set), 0U) << text;
  };
  expect(reason([](double x) { return 2 * x; }), "subnormal numbers");
  expect(reason([](double x) { return x == 0 ? 0 : flushed(2 * flushed(x)); }), "zeros");
  expect(reason([](double x) { return std::isnan(x) ? std::fabs(x) : flushed(2 * flushed(x)); }),
         "infinite numbers and NaN");
}

TEST_F(VerificationTest, FindsBytesThatOnlyOneRouteWrites) {
  Twice reference;
  reference.written_bytes = kBytes - sizeof(double);
  const std::string text = compare(plan("twice"), reference);
  EXPECT_NE(text.find("instead of a5a5a5a5a5a5a5a5 at offset 40"), std::string::npos) << text;
}

TEST_F(VerificationTest, ReportsAFailureOfEitherRoute) {
  Twice reference;
  EXPECT_EQ(compare(plan("fail"), reference), "a kernel failed when called directly for numbers");
  reference.succeeds = false;
  EXPECT_EQ(compare(plan("twice"), reference), "the plugin failed to run the program for numbers");
}

TEST_F(VerificationTest, GivesNumbersAloneToLoopsThatMayNotEnd) {
  Plan unbounded = plan("twice");
  unbounded.has_unbounded_loop = true;
  Twice reference;
  reference.of = [](double x) {
    EXPECT_TRUE(std::isnormal(x));
    return 2 * x;
  };
  EXPECT_EQ(compare(unbounded, reference), "");
  EXPECT_EQ(reference.calls, 3);
}

TEST_F(VerificationTest, RunsDirectlyWithoutTheReference) {
  const auto runs = [](const char* kernel) {
    const Executable executable(plan(kernel), ExternalSymbols());
    Context context(executable);
    return Verification(executable, {CYXLA_F64}).run(context);
  };
  EXPECT_TRUE(runs("twice"));
  EXPECT_FALSE(runs("fail"));
}

}  // namespace
}  // namespace cyxla::direct

#endif

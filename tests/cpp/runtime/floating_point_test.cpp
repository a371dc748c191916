// SPDX-License-Identifier: Apache-2.0
// The plugin never runs in its caller's floating-point state: the fake plugin records a violation
// for every function that does.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstdint>
#include <string>

#include "support/ffi_handlers.h"
#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::Array;
using test::ProgramReference;
using test::signature_of;

constexpr const char* kDouble = "input F32[3]\noutput F32[3] scale 0 2\n";

class CallersFloatingPointTest : public test::RuntimeTest {
 protected:
  // Does a step while the caller rounds upward.
  template <typename Step>
  void rounding_upward(const char* what, Step step) {
    const std::uint64_t violations = fake.violations();
    const std::uint64_t calls = fake.all_calls();
    std::fesetround(FE_UPWARD);
    step();
    const int rounding = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(rounding, FE_UPWARD) << what;
    EXPECT_EQ(fake.violations(), violations) << what;
    EXPECT_GT(fake.all_calls(), calls) << what << " does not call the plugin";
  }
};

TEST_F(CallersFloatingPointTest, NoOperationCallsThePluginInIt) {
  fake.set(FAKE_PLUGIN_PLATFORM, 1);  // for the direct route
  fake.set(FAKE_PLUGIN_GPU_CUSTOM_CALL, 1);
  std::string serialized;
  ProgramReference program;
  rounding_upward("load", [&] { loaded(); });
  rounding_upward("try the direct route",
                  [&] { static_cast<void>(loaded().direct_refusal(false)); });
  rounding_upward("compile", [&] {
    CompileRequest request = test::request_of(kDouble);
    request.keeps_serialized = true;
    Compiled compiled = loaded().compile(std::move(request));
    program = std::move(compiled.program);
    serialized = std::move(compiled.serialized);
  });
  rounding_upward("serialize", [&] { loaded().serialize(*program); });
  rounding_upward("release", [&] { program.reset(); });
  rounding_upward("load a compiled program", [&] {
    program = loaded().load_compiled(test::request_of(serialized, signature_of(kDouble))).program;
  });

  const Array<float> input({1, 2, 3});
  const Array<float> output({0, 0, 0});
  const cyxla_input inputs[] = {input.input(PJRT_Buffer_Type_F32)};
  void* const outputs[] = {output.data()};
  for (const int zero_copy : {0, 1}) {
    rounding_upward("execute",
                    [&] { EXPECT_EQ(execute(&program->spec(), inputs, outputs, zero_copy), 0); });
  }
  cyxla_call* const prepared = prepare(&program->spec(), inputs, outputs, 1);
  rounding_upward("call", [&] { EXPECT_EQ(call(prepared), 0); });
  rounding_upward("discard", [&] { discard(prepared); });
  rounding_upward("register", [&] {
    loaded().register_ffi_handler("target", "Host", test::handler_address<0, 2>());
  });
  int stage = 0;  // only its address matters
  rounding_upward("register for a GPU",
                  [&] { loaded().register_gpu_custom_call("target", {.execute = &stage}); });
  rounding_upward("shut down", [&] { Runtime::shut_down(); });
}

}  // namespace
}  // namespace cyxla::runtime

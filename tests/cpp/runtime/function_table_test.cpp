// SPDX-License-Identifier: Apache-2.0
#include "runtime/function_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::ProgramReference;

const cyxla_program_spec* no_program_spec(void* /*executable*/) { return nullptr; }

class FunctionTableTest : public test::RuntimeTest {
 protected:
  const cyxla_api table = make_function_table(no_program_spec);
};

TEST_F(FunctionTableTest, SaysWhatItIs) {
  EXPECT_EQ(table.struct_size, sizeof(cyxla_api));
  EXPECT_EQ(table.abi_version, CYXLA_ABI_VERSION);
  EXPECT_EQ(table.spec_size, sizeof(cyxla_program_spec));
  EXPECT_EQ(table.program_spec, no_program_spec);
}

TEST_F(FunctionTableTest, EveryMemberIsThere) {
  // From the first function on, the table holds nothing but addresses of functions.
  std::array<void*, (sizeof(cyxla_api) - offsetof(cyxla_api, execute)) / sizeof(void*)> functions;
  static_assert(sizeof functions + offsetof(cyxla_api, execute) == sizeof(cyxla_api));
  std::memcpy(functions.data(),
              reinterpret_cast<const char*>(&table) + offsetof(cyxla_api, execute),
              sizeof functions);
  for (std::size_t i = 0; i < functions.size(); ++i) {
    EXPECT_NE(functions[i], nullptr) << i;
  }
}

TEST_F(FunctionTableTest, ExecutesThroughItsMembers) {
  ProgramReference program = compile("input S32[2]\noutput S32[] sum 0\n");
  const cyxla_program_spec* spec = &program->spec();
  table.retain(spec);
  program.reset();

  auto* values = static_cast<std::int32_t*>(table.aligned_memory(2 * sizeof(std::int32_t)));
  ASSERT_NE(values, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values) % CYXLA_ALIGNMENT, 0U);
  values[0] = 40;
  values[1] = 2;
  const cyxla_input inputs[] = {{values, PJRT_Buffer_Type_S32, 2}};
  std::int32_t sum = 0;
  void* const outputs[] = {&sum};
  EXPECT_EQ(table.execute(spec, inputs, outputs, 1), 0);
  EXPECT_EQ(sum, 42);

  cyxla_call* call = table.prepare(spec, inputs, outputs, 1);
  ASSERT_NE(call, nullptr);
  values[0] = 50;
  EXPECT_EQ(table.call(call), 0);
  EXPECT_EQ(sum, 52);
  std::int32_t other = 0;
  EXPECT_EQ(table.rebind(call, 1, &other), 0);
  EXPECT_EQ(table.call(call), 0);
  EXPECT_EQ(other, 52);
  table.discard(call);
  table.release(spec);
  table.free_aligned(values);
  table.free_aligned(nullptr);
  EXPECT_EQ(fake.live(FAKE_PLUGIN_LOADED_EXECUTABLE), 0);
}

TEST_F(FunctionTableTest, NullSpecsAreIgnored) {
  table.retain(nullptr);
  table.release(nullptr);
  EXPECT_EQ(table.last_error_code(), CYXLA_ERROR_NONE);
}

TEST_F(FunctionTableTest, TellsErrorsAndSizes) {
  EXPECT_EQ(table.execute(nullptr, nullptr, nullptr, 0), -1);
  std::array<char, 20> text = {};
  EXPECT_EQ(table.last_error(text.data(), text.size()), test::last_message().size());
  EXPECT_STREQ(text.data(), "the program spec is");
  EXPECT_EQ(table.last_error_code(), CYXLA_ERROR_ARGUMENT);
  table.clear_error();
  EXPECT_EQ(table.last_error(text.data(), text.size()), 0U);
  EXPECT_STREQ(text.data(), "");
  EXPECT_EQ(table.last_error_code(), CYXLA_ERROR_NONE);
  EXPECT_EQ(table.itemsize(PJRT_Buffer_Type_C128), 16U);
  EXPECT_EQ(table.itemsize(PJRT_Buffer_Type_S4), 0U);
  EXPECT_EQ(table.itemsize(-1), 0U);
}

}  // namespace
}  // namespace cyxla::runtime

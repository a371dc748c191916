// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/child_process.h"
#include "support/runtime_test.h"

namespace cyxla::runtime {
namespace {

using test::Array;
using test::last_message;
using test::ProgramReference;

constexpr const char* kAdd =
    "input F32[3]\ninput F32[3]\noutput F32[3] add 0 1\noutput F32[] sum 0\n";
constexpr std::size_t kLeft = 0;
constexpr std::size_t kRight = 1;
constexpr std::size_t kAdded = 2;
constexpr std::size_t kSum = 3;

struct Discard {
  void operator()(cyxla_call* call) const { discard(call); }
};
using Call = std::unique_ptr<cyxla_call, Discard>;

class RebindTest : public test::RuntimeTest, public ::testing::WithParamInterface<int> {
 protected:
  static constexpr int kNoViews = 2;

  // The parameter is zero_copy; kNoViews means zero copy on a plugin without views.
  void SetUp() override {
    RuntimeTest::SetUp();
    fake.set(FAKE_PLUGIN_VIEWS, GetParam() == kNoViews ? 2 : 0);
    program = compile(kAdd);
  }
  void TearDown() override {
    program.reset();
    RuntimeTest::TearDown();
  }
  Call prepare_add() {
    const std::vector<cyxla_input> inputs = {left.input(PJRT_Buffer_Type_F32),
                                             right.input(PJRT_Buffer_Type_F32)};
    const std::vector<void*> outputs = {added.data(), sum.data()};
    Call prepared(prepare(&program->spec(), inputs.data(), outputs.data(), GetParam()));
    EXPECT_NE(prepared, nullptr) << last_message();
    return prepared;
  }
  void expect_old_addresses(const Call& prepared) {
    added.assign({0, 0, 0});
    sum.assign({0});
    ASSERT_EQ(call(prepared.get()), 0) << last_message();
    EXPECT_EQ(added.values(), (std::vector<float>{11, 22, 33}));
    EXPECT_EQ(sum.values(), std::vector<float>{6});
  }

  ProgramReference program;
  Array<float> left{{1, 2, 3}};
  Array<float> right{{10, 20, 30}, 4};
  Array<float> added{{0, 0, 0}};
  Array<float> sum{{0}, 4};
};

TEST_P(RebindTest, TheNextCallUsesTheNewAddress) {
  const Call prepared = prepare_add();
  expect_old_addresses(prepared);
  for (const std::size_t offset : {0U, 4U, 1U, 32U, 0U}) {
    const Array<float> other({4, 5, 6}, offset);
    const Array<float> result({0, 0, 0}, offset);
    ASSERT_EQ(rebind(prepared.get(), kLeft, other.data()), 0) << last_message();
    ASSERT_EQ(rebind(prepared.get(), kAdded, result.data()), 0) << last_message();
    added.assign({-1, -1, -1});
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(call(prepared.get()), 0) << last_message();
      EXPECT_EQ(result.values(), (std::vector<float>{14, 25, 36})) << offset;
      EXPECT_EQ(sum.values(), std::vector<float>{15}) << offset;
    }
    EXPECT_EQ(added.values(), (std::vector<float>{-1, -1, -1}));
  }
  ASSERT_EQ(rebind(prepared.get(), kLeft, left.data()), 0);
  ASSERT_EQ(rebind(prepared.get(), kAdded, added.data()), 0);
  expect_old_addresses(prepared);
}

TEST_P(RebindTest, SeveralInputsMayHaveOneAddress) {
  const Call prepared = prepare_add();
  ASSERT_EQ(rebind(prepared.get(), kRight, left.data()), 0);
  ASSERT_EQ(call(prepared.get()), 0) << last_message();
  EXPECT_EQ(added.values(), (std::vector<float>{2, 4, 6}));
}

TEST_P(RebindTest, NullDropsAnOutput) {
  const Call prepared = prepare_add();
  ASSERT_EQ(rebind(prepared.get(), kSum, nullptr), 0) << last_message();
  sum.assign({-1});
  ASSERT_EQ(call(prepared.get()), 0) << last_message();
  EXPECT_EQ(sum.values(), std::vector<float>{-1});
  EXPECT_EQ(added.values(), (std::vector<float>{11, 22, 33}));
  ASSERT_EQ(rebind(prepared.get(), kSum, sum.data()), 0);
  expect_old_addresses(prepared);
}

TEST_P(RebindTest, ARefusalChangesNothing) {
  const Call prepared = prepare_add();
  EXPECT_EQ(rebind(prepared.get(), kRight, nullptr), -1);
  EXPECT_EQ(last_message(), "input 1 of the program f has 12 bytes, but its data is NULL");
  EXPECT_EQ(last_error_number(), CYXLA_ERROR_ARGUMENT);
  for (const std::size_t index : {std::size_t{4}, static_cast<std::size_t>(-1)}) {
    EXPECT_EQ(rebind(prepared.get(), index, left.data()), -1);
    EXPECT_EQ(last_message(), "cannot rebind array " + std::to_string(index) +
                                  " of the program f: it has 2 inputs and 2 outputs; the index "
                                  "counts the inputs, then the outputs");
  }
  EXPECT_EQ(rebind(nullptr, kLeft, left.data()), -1);
  EXPECT_EQ(last_message(), "the prepared call is NULL");
  expect_old_addresses(prepared);
}

TEST_P(RebindTest, WorksAfterACallThatFailed) {
  const Call prepared = prepare_add();
  const Array<float> other({4, 5, 6});
  fake.fail("PJRT_LoadedExecutable_Execute", 1, PJRT_Error_Code_INTERNAL, "burnt");
  EXPECT_EQ(call(prepared.get()), -1);
  ASSERT_EQ(rebind(prepared.get(), kLeft, other.data()), 0) << last_message();
  ASSERT_EQ(call(prepared.get()), 0) << last_message();
  EXPECT_EQ(added.values(), (std::vector<float>{14, 25, 36}));
}

TEST_P(RebindTest, IsRefusedDuringTheCall) {
  const Call prepared = prepare_add();
  fake.on_execute(
      [](void* running) {
        EXPECT_EQ(rebind(static_cast<cyxla_call*>(running), kAdded, nullptr), -1);
        EXPECT_EQ(last_message().find("a prepared call of the program f is already running"), 0U)
            << last_message();
      },
      prepared.get());
  EXPECT_EQ(call(prepared.get()), 0) << last_message();
  fake.on_execute(nullptr, nullptr);
  expect_old_addresses(prepared);
}

TEST_P(RebindTest, AfterShutdownItFails) {
  const Call prepared = prepare_add();
  Runtime::shut_down();
  EXPECT_EQ(rebind(prepared.get(), kLeft, left.data()), -1);
  EXPECT_EQ(last_message(), "cannot execute the program f: the runtime is shut down");
}

TEST_P(RebindTest, InAForkedChildItFails) {
  const Call prepared = prepare_add();
  EXPECT_EQ(test::in_child([&] {
              const int result = rebind(prepared.get(), kLeft, left.data());
              return std::to_string(result) + " " + std::to_string(last_error_number());
            }),
            "-1 " + std::to_string(CYXLA_ERROR_FORK));
}

INSTANTIATE_TEST_SUITE_P(ZeroCopy, RebindTest, ::testing::Values(0, 1, 2));

class RebindOnceTest : public test::RuntimeTest {};

// As prepare() treats them: zero_copy stays what it was, and what overlaps is copied.
TEST_F(RebindOnceTest, ViewsAreMadeAsByPrepare) {
  const ProgramReference program = compile("input F32[3]\noutput F32[3] copy 0\n");
  const Array<float> values({1, 2, 3});
  const Array<float> others({4, 5, 6});
  const Array<float> result({0, 0, 0});
  const cyxla_input input = values.input(PJRT_Buffer_Type_F32);
  void* const output = result.data();
  for (const int zero_copy : {0, 1}) {
    const Call prepared(prepare(&program->spec(), &input, &output, zero_copy));
    ASSERT_EQ(call(prepared.get()), 0) << last_message();
    const std::uint64_t views = fake.calls("PJRT_Client_CreateViewOfDeviceBuffer");
    for (int i = 0; i < 6; ++i) {
      const Array<float>& given = i % 2 == 0 ? others : values;
      ASSERT_EQ(rebind(prepared.get(), 0, given.data()), 0);
      ASSERT_EQ(call(prepared.get()), 0) << last_message();
      EXPECT_EQ(result.values(), given.values());
    }
    // A small array gets a view at once, one for each address; without zero_copy none.
    EXPECT_EQ(fake.calls("PJRT_Client_CreateViewOfDeviceBuffer") - views,
              static_cast<std::uint64_t>(zero_copy));
  }
}

TEST_F(RebindOnceTest, AnOutputInPlaceMayMoveOverAnInput) {
  constexpr const char* kCode =
      "# tf.aliasing_output\n"
      "input F32[4]\n"
      "input F32[4]\n"
      "output F32[4] scale 0 3 into 1\n";
  Signature signature = test::signature_of(kCode);
  signature.inputs.pop_back();
  signature.in_place_outputs = {0};
  const ProgramReference program = loaded().compile(test::request_of(kCode, signature)).program;
  const Array<float> both(std::vector<float>(8, 1));
  const Array<float> result(std::vector<float>(4, 0));
  const cyxla_input input = {both.data(), PJRT_Buffer_Type_F32, 4};
  void* const output = result.data();
  const Call prepared(prepare(&program->spec(), &input, &output, 0));
  ASSERT_EQ(call(prepared.get()), 0) << last_message();
  EXPECT_EQ(result.values(), std::vector<float>(4, 3));
  // Two elements behind the beginning of the input: neither aligned nor apart from it.
  float* const overlapping = static_cast<float*>(both.data()) + 2;
  for (void* const address : {both.data(), static_cast<void*>(overlapping)}) {
    const std::vector<float> before = both.values();
    ASSERT_EQ(rebind(prepared.get(), 1, address), 0);
    ASSERT_EQ(call(prepared.get()), 0) << last_message();
    const auto* const written = static_cast<float*>(address);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(written[i], 3 * before[i]);
    }
  }
}

TEST_F(RebindOnceTest, AnInputWithoutElementsMayBeNull) {
  const ProgramReference program = compile("input F32[0]\noutput F32[0] copy 0\n");
  const Array<float> nothing({});
  const cyxla_input input = {nothing.data(), PJRT_Buffer_Type_F32, 0};
  void* const output = nullptr;
  const Call prepared(prepare(&program->spec(), &input, &output, 1));
  EXPECT_EQ(rebind(prepared.get(), 0, nullptr), 0) << last_message();
  EXPECT_EQ(call(prepared.get()), 0) << last_message();
}

TEST_F(RebindOnceTest, ChecksBoolsWhenAsked) {
  ::setenv("CYXLA_CHECK", "1", 1);
  const ProgramReference program = compile("input PRED[2]\noutput PRED[2] copy 0\n");
  const std::array<unsigned char, 2> good = {0, 1};
  const std::array<unsigned char, 2> bad = {0, 7};
  std::array<unsigned char, 2> result = {};
  const cyxla_input input = {good.data(), CYXLA_PRED, 2};
  void* const output = result.data();
  const Call prepared(prepare(&program->spec(), &input, &output, 1));
  ASSERT_NE(prepared, nullptr);
  EXPECT_EQ(rebind(prepared.get(), 0, bad.data()), -1);
  EXPECT_EQ(last_message(),
            "input 0 of the program f is bool, but element 1 has the byte 7; write 0 or 1");
  EXPECT_EQ(call(prepared.get()), 0) << last_message();
  EXPECT_EQ(result, good);
}

}  // namespace
}  // namespace cyxla::runtime

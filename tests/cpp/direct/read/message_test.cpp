// SPDX-License-Identifier: Apache-2.0
#include "direct/read/message.h"

#include "direct/messages.h"

namespace cyxla::direct {
namespace {

using test::bytes;
using test::number;
using test::refusal;

// At the first field of `text`.
Message first(std::string_view text) {
  Message message(text, "a thing");
  EXPECT_TRUE(message.next());
  return message;
}

TEST(Message, GivesEachFieldOnce) {
  const std::string text = number(1, 7) + bytes(2, "ab") + number(3, 1);
  Message message(text, "a thing");
  ASSERT_TRUE(message.next());
  EXPECT_EQ(message.field(), 1u);
  EXPECT_FALSE(message.is_bytes());
  EXPECT_EQ(message.number(), 7u);
  ASSERT_TRUE(message.next());
  EXPECT_TRUE(message.is_bytes());
  EXPECT_EQ(message.bytes(), "ab");
  ASSERT_TRUE(message.next());
  EXPECT_TRUE(message.flag());
  EXPECT_FALSE(message.next());
}

TEST(Message, RefusesMalformedBytes) {
  const std::string text = bytes(2, "abc").substr(0, 3);
  EXPECT_EQ(refusal([&] { Message(text, "a thing").next(); }),
            "the bytes of a thing are malformed");
}

TEST(Message, RefusesAnotherWireType) {
  const std::string varint = number(4, 7);
  const std::string string = bytes(4, "ab");
  const std::string fixed = test::fixed64(4);
  const std::string reason = "field 4 of a thing has an unknown wire type";
  std::vector<std::uint64_t> values;
  EXPECT_EQ(refusal([&] { first(string).number(); }), reason);
  EXPECT_EQ(refusal([&] { first(string).flag(); }), reason);
  EXPECT_EQ(refusal([&] { first(string).ignore_number(); }), reason);
  EXPECT_EQ(refusal([&] { first(varint).bytes(); }), reason);
  EXPECT_EQ(refusal([&] { first(varint).repeated_bytes(); }), reason);
  EXPECT_EQ(refusal([&] { first(varint).ignore_bytes(); }), reason);
  EXPECT_EQ(refusal([&] { first(fixed).repeated_numbers(values); }), reason);
}

TEST(Message, RefusesASecondValueOfASingleField) {
  for (const std::string& text : {number(1, 7) + number(1, 7), bytes(1, "") + number(1, 7)}) {
    Message message(text, "a thing");
    ASSERT_TRUE(message.next());
    message.is_bytes() ? static_cast<void>(message.bytes()) : static_cast<void>(message.number());
    ASSERT_TRUE(message.next());
    EXPECT_EQ(refusal([&] { message.number(); }), "field 1 of a thing occurs twice");
  }
}

TEST(Message, RefusesWhatItsCallerDoes) {
  const std::string text = number(9, 2);
  EXPECT_EQ(refusal([&] { first(text).refuse_unknown(); }), "field 9 of a thing is unknown");
  EXPECT_EQ(refusal([&] { first(text).refuse_value(); }),
            "field 9 of a thing has an unknown value");
  EXPECT_EQ(refusal([&] { first(text).flag(); }), "field 9 of a thing has an unknown value");
}

TEST(Message, RefusesFieldsThatNoReaderKnows) {
  const std::string text = number(128, 2);
  EXPECT_EQ(refusal([&] { first(text).number(); }), "field 128 of a thing is unknown");
}

TEST(Message, AppendsRepeatedNumbersPackedOrNot) {
  const std::string text = test::packed(1, {1, 300}) + number(1, 5) + test::packed(1, {});
  std::vector<std::uint64_t> values;
  Message message(text, "a thing");
  while (message.next()) {
    message.repeated_numbers(values);
  }
  EXPECT_EQ(values, (std::vector<std::uint64_t>{1, 300, 5}));
  const std::string cut = bytes(1, "\x80");
  EXPECT_EQ(refusal([&] { first(cut).repeated_numbers(values); }),
            "field 1 of a thing has an unknown value");
}

}  // namespace
}  // namespace cyxla::direct

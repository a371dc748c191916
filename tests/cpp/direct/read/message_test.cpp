// SPDX-License-Identifier: Apache-2.0
#include "direct/read/message.h"

#include "direct/messages.h"

namespace cyxla::direct {
namespace {

using test::bytes;
using test::number;
using test::packed;
using test::refusal;
using Numbers = std::vector<std::uint64_t>;

constexpr Row kThing[] = {
    {1, "count", Kind::kNumber},
    {2, "label", Kind::kBytes},
    {3, "is_red", Kind::kFlag},
    {5, "sizes", Kind::kNumbers},
    {6, "parts", Kind::kRepeatedBytes},
    {7, "note", Kind::kBytes, Rule::kIgnore},
    {8, "ids", Kind::kNumbers, Rule::kIgnore},
    {9, "color", Kind::kNumber, Rule::kUnset},
    {10, "extra", Kind::kBytes, Rule::kUnset},
    {11, "is_moving", Kind::kNumbers, Rule::kUnset},
    {200, "shade", Kind::kNumber, Rule::kRefuse},
};

std::string refused(const std::string& text) {
  return refusal([&] { Message<kThing>(text, "a thing"); });
}

TEST(Message, GivesTheValuesOfItsFields) {
  const std::string text = number(3, 1) + bytes(2, "ab") + number(1, 7) + bytes(6, "x") +
                           bytes(6, "") + bytes(7, "n") + bytes(7, "n") + packed(8, {1, 2}) +
                           number(8, 3) + number(9, 0) + bytes(10, "") + packed(11, {0, 0});
  const Message<kThing> thing(text, "a thing");
  EXPECT_TRUE(thing.has("count"));
  EXPECT_EQ(thing.number("count"), 7u);
  EXPECT_EQ(thing.bytes("label"), "ab");
  EXPECT_TRUE(thing.flag("is_red"));
  std::vector<std::string_view> parts;
  thing.for_each("parts", [&](std::string_view part) { parts.push_back(part); });
  EXPECT_EQ(parts, (std::vector<std::string_view>{"x", ""}));
}

TEST(Message, AbsentFieldsHaveTheirDefaultValues) {
  const Message<kThing> thing("", "a thing");
  EXPECT_FALSE(thing.has("count"));
  EXPECT_EQ(thing.number("count"), 0u);
  EXPECT_EQ(thing.bytes("label"), "");
  EXPECT_FALSE(thing.flag("is_red"));
  EXPECT_EQ(thing.numbers("sizes"), Numbers{});
  thing.for_each("parts", [](std::string_view) { ADD_FAILURE() << "it has no parts"; });
}

TEST(Message, RepeatedNumbersMayBePacked) {
  const std::string text = packed(5, {1, 300}) + number(5, 5) + packed(5, {});
  EXPECT_EQ(Message<kThing>(text, "a thing").numbers("sizes"), (Numbers{1, 300, 5}));
}

TEST(Message, NamesTheFieldThatItRefuses) {
  EXPECT_EQ(refused(bytes(2, "abc").substr(0, 3)), "the bytes of a thing are malformed");
  EXPECT_EQ(refused(number(4, 1)), "a thing has field 4, which this cyxla does not know");
  EXPECT_EQ(refused(number(2, 1)), "field 2 (label) of a thing has an unknown encoding");
  EXPECT_EQ(refused(bytes(5, "\x80")), "field 5 (sizes) of a thing has an unknown encoding");
  EXPECT_EQ(refused(number(7, 1)), "field 7 (note) of a thing has an unknown encoding");
  EXPECT_EQ(refused(bytes(8, "\x80")), "field 8 (ids) of a thing has an unknown encoding");
  EXPECT_EQ(refused(number(1, 0) + number(1, 0)), "field 1 (count) of a thing occurs twice");
  const std::string value = " has a value that cyxla does not support";
  EXPECT_EQ(refused(number(3, 2)), "field 3 (is_red) of a thing" + value);
  EXPECT_EQ(refused(number(9, 1)), "field 9 (color) of a thing" + value);
  EXPECT_EQ(refused(bytes(10, "x")), "field 10 (extra) of a thing" + value);
  EXPECT_EQ(refused(packed(11, {0, 1})), "field 11 (is_moving) of a thing" + value);
  EXPECT_EQ(refused(bytes(200, "")),
            "field 200 (shade) of a thing is set, which cyxla does not support");
}

TEST(Message, TellsTheReasonByAnEnumeratorToo) {
  const auto reason = [](const std::string& text) {
    try {
      Message<kThing>(text, "a thing");
    } catch (const Refusal& refusal) {
      return refusal.reason();
    }
    return Reason::kPlatform;
  };
  EXPECT_EQ(reason(number(4, 1)), Reason::kUnknownField);
  EXPECT_EQ(reason(number(2, 1)), Reason::kUnknownField);
  EXPECT_EQ(reason(number(9, 1)), Reason::kUnsupportedField);
  EXPECT_EQ(reason(number(200, 1)), Reason::kUnsupportedField);
  EXPECT_EQ(reason(number(1, 1) + number(1, 1)), Reason::kMalformed);
}

TEST(Message, ALenientOneSkipsWhatItsTableDoesNotDescribe) {
  const std::string text = number(4, 1) + number(2, 1) + number(1, 3) + number(1, 4) +
                           bytes(5, "\x80") + number(5, 6) + number(9, 1);
  const Message<kThing> thing(text, Lenient());
  EXPECT_EQ(thing.number("count"), 4u);
  EXPECT_FALSE(thing.has("label"));
  EXPECT_EQ(thing.numbers("sizes"), Numbers{6});
  EXPECT_EQ(Message<kThing>(number(1, 3) + "\x0a", Lenient()).number("count"), 3u);
}

}  // namespace
}  // namespace cyxla::direct

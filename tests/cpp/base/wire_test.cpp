// SPDX-License-Identifier: Apache-2.0
#include "base/wire.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace cyxla::wire {
namespace {

using std::string_literals::operator""s;

std::string varint(std::uint64_t value) {
  std::string out;
  append_varint(out, value);
  return out;
}

// Returns whether reading fails at a malformed byte after `num_fields` good fields.
bool fails_after(const std::string& message, int num_fields) {
  Reader reader(message);
  for (int i = 0; i < num_fields; ++i) {
    if (!reader.next() || reader.failed()) {
      return false;
    }
  }
  const bool ended = !reader.next() && reader.failed();
  return ended && !reader.next() && reader.failed();  // the failure is permanent
}

TEST(Wire, VarintsAreLittleEndianGroupsOfSevenBits) {
  EXPECT_EQ(varint(0), "\x00"s);
  EXPECT_EQ(varint(1), "\x01"s);
  EXPECT_EQ(varint(127), "\x7f"s);
  EXPECT_EQ(varint(128), "\x80\x01"s);
  EXPECT_EQ(varint(300), "\xac\x02"s);
  EXPECT_EQ(varint(std::numeric_limits<std::uint64_t>::max()),
            "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST(Wire, FieldsStartWithTheirNumberAndType) {
  std::string out;
  append_varint_field(out, 1, 150);
  EXPECT_EQ(out, "\x08\x96\x01"s);
  out.clear();
  append_bytes_field(out, 2, "testing");
  EXPECT_EQ(out, "\x12\x07testing"s);
  out.clear();
  append_double_field(out, 4, 1.0);
  EXPECT_EQ(out, "\x21\x00\x00\x00\x00\x00\x00\xf0\x3f"s);
  out.clear();
  append_varint_field(out, 16, 0);
  EXPECT_EQ(out, "\x80\x01\x00"s);
}

TEST(Wire, AppendingKeepsWhatIsThere) {
  std::string out = "before";
  append_bytes_field(out, 1, "");
  EXPECT_EQ(out, "before\x0a\x00"s);
}

TEST(Wire, ReaderGivesBackWhatWasWritten) {
  std::string message;
  append_varint_field(message, 1, std::numeric_limits<std::uint64_t>::max());
  append_bytes_field(message, 2, "bytes\0with zero"s);
  append_double_field(message, 536870911, -2.5);  // the largest field number
  message += "\x2d\x01\x02\x03\x04"s;             // field 5, 32 bits
  append_bytes_field(message, 6, "");

  Reader reader(message);
  auto field = reader.next();
  ASSERT_TRUE(field);
  EXPECT_EQ(field->field, 1U);
  EXPECT_EQ(field->type, Type::kVarint);
  EXPECT_EQ(field->number, std::numeric_limits<std::uint64_t>::max());

  field = reader.next();
  ASSERT_TRUE(field);
  EXPECT_EQ(field->field, 2U);
  EXPECT_EQ(field->type, Type::kBytes);
  EXPECT_EQ(field->bytes, "bytes\0with zero"s);

  field = reader.next();
  ASSERT_TRUE(field);
  EXPECT_EQ(field->field, 536870911U);
  EXPECT_EQ(field->type, Type::kFixed64);
  double number = 0;
  std::memcpy(&number, &field->number, sizeof number);
  EXPECT_EQ(number, -2.5);

  field = reader.next();
  ASSERT_TRUE(field);
  EXPECT_EQ(field->field, 5U);
  EXPECT_EQ(field->type, Type::kFixed32);
  EXPECT_EQ(field->number, 0x04030201U);

  field = reader.next();
  ASSERT_TRUE(field);
  EXPECT_EQ(field->field, 6U);
  EXPECT_TRUE(field->bytes.empty());

  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.failed());
}

TEST(Wire, AnEmptyMessageIsNoFailure) {
  Reader reader("");
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.failed());
}

TEST(Wire, MalformedMessagesFail) {
  EXPECT_TRUE(fails_after("\x80"s, 0)) << "tag cut off";
  EXPECT_TRUE(fails_after("\x08"s, 0)) << "varint missing";
  EXPECT_TRUE(fails_after("\x08\x80"s, 0)) << "varint cut off";
  EXPECT_TRUE(fails_after("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"s, 0))
      << "varint of eleven bytes";
  EXPECT_TRUE(
      fails_after("\x0a\x05"
                  "abcd"s,
                  0))
      << "bytes cut off";
  EXPECT_TRUE(fails_after("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s, 0))
      << "length beyond the address space";
  EXPECT_TRUE(fails_after("\x0a"s, 0)) << "length missing";
  EXPECT_TRUE(fails_after("\x09\x01\x02\x03\x04\x05\x06\x07"s, 0)) << "64 bits cut off";
  EXPECT_TRUE(fails_after("\x0d\x01\x02\x03"s, 0)) << "32 bits cut off";
  EXPECT_TRUE(fails_after("\x0b"s, 0)) << "group start";
  EXPECT_TRUE(fails_after("\x0c"s, 0)) << "group end";
  EXPECT_TRUE(fails_after("\x0e"s, 0)) << "type 6";
  EXPECT_TRUE(fails_after("\x0f"s, 0)) << "type 7";
  EXPECT_TRUE(fails_after("\x00\x01"s, 0)) << "field 0";
  EXPECT_TRUE(fails_after("\x80\x80\x80\x80\x10\x01"s, 0)) << "field 2^29";
}

TEST(Wire, AFailureComesAfterTheGoodFields) {
  EXPECT_TRUE(fails_after("\x08\x01\x10\x02\x0b"s, 2));
  EXPECT_TRUE(fails_after("\x0a\x01x\x08"s, 1));
}

TEST(Wire, EveryPrefixOfAMessageIsReadWithoutOverrun) {
  std::string message;
  append_varint_field(message, 1, 300);
  append_bytes_field(message, 2, "0123456789");
  append_double_field(message, 3, 1.5);
  message +=
      "\x25"
      "abcd"s;
  for (std::size_t length = 0; length <= message.size(); ++length) {
    // A copy, so that AddressSanitizer sees a read past the end.
    const std::vector<char> prefix(message.begin(),
                                   message.begin() + static_cast<std::ptrdiff_t>(length));
    Reader reader({prefix.data(), prefix.size()});
    std::size_t fields = 0;
    while (reader.next()) {
      ++fields;
    }
    const bool complete =
        length == 0 || length == 3 || length == 15 || length == 24 || length == message.size();
    EXPECT_EQ(reader.failed(), !complete) << length;
    EXPECT_LE(fields, 4U);
  }
}

}  // namespace
}  // namespace cyxla::wire

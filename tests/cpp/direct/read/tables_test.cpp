// SPDX-License-Identifier: Apache-2.0
// What every table promises, row by row. tests/python/test_direct_tables.py compares the names and
// numbers of the rows with the plugins' own descriptors.
#include "direct/read/tables.h"

#include <functional>

#include "direct/messages.h"

namespace cyxla::direct {
namespace {

using test::bytes;
using test::number;
using test::packed;

constexpr std::uint32_t kBeyondEveryTable = 300;

struct TableCase {
  std::string name;
  std::span<const Row> rows;
  std::function<void(const std::string&)> read;
};

template <const auto& table>
TableCase table_case(const char* name) {
  return {name, table, [](const std::string& text) { Message<table>(text, "a message"); }};
}
#define TABLE(name) table_case<proto::name>(#name)

const TableCase kTables[] = {
    TABLE(kExecutableAndOptions),
    TABLE(kHloModuleWithConfig),
    TABLE(kCompilationResult),
    TABLE(kSymbol),
    TABLE(kObjFile),
    TABLE(kTargetMachineOptions),
    TABLE(kThunkSequence),
    TABLE(kThunk),
    TABLE(kInfo),
    TABLE(kCallThunk),
    TABLE(kConditionalThunk),
    TABLE(kWhileThunk),
    TABLE(kKernelThunk),
    TABLE(kNumWorkGroups),
    TABLE(kCopyThunk),
    TABLE(kInt64Optional),
    TABLE(kShapedSlice),
    TABLE(kShapeBufferAllocationSlice),
    TABLE(kBufferAssignment),
    TABLE(kBufferAllocationSlice),
    TABLE(kLogicalBuffer),
    TABLE(kLocation),
    TABLE(kBufferAlias),
    TABLE(kBufferAllocation),
    TABLE(kAssigned),
    TABLE(kHloModule),
    TABLE(kHloComputation),
    TABLE(kHloInstruction),
    TABLE(kProgramShape),
    TABLE(kShape),
    TABLE(kLayout),
    TABLE(kLiteral),
    TABLE(kWindow),
    TABLE(kWindowDimension),
    TABLE(kDotDimensionNumbers),
};

bool is_number(Kind kind) { return kind == Kind::kNumber || kind == Kind::kFlag; }

// The field with its default value, in its own encoding and in another one.
std::string value(const Row& row) {
  return is_number(row.kind) ? number(row.number, 0) : bytes(row.number, "");
}
std::string other_type(const Row& row) {
  return is_number(row.kind)          ? bytes(row.number, "")
         : row.kind == Kind::kNumbers ? test::fixed64(row.number)
                                      : number(row.number, 0);
}

class Tables : public testing::TestWithParam<TableCase> {
 protected:
  static void expect_read(const std::string& text) {
    EXPECT_NO_THROW(GetParam().read(text)) << GetParam().name;
  }
  static void expect_refused(Reason reason, const Row& row, const std::string& text) {
    try {
      GetParam().read(text);
      ADD_FAILURE() << GetParam().name << " takes " << row.name;
    } catch (const Refusal& refusal) {
      EXPECT_EQ(refusal.reason(), reason) << refusal.what();
      EXPECT_NE(std::string(refusal.what()).find(row.name), std::string::npos) << refusal.what();
    }
  }
};

TEST_P(Tables, TakesEachFieldAsItsRowSays) {
  for (const Row& row : GetParam().rows) {
    if (row.rule == Rule::kRefuse) {
      expect_refused(Reason::kUnsupportedField, row, value(row));
      expect_refused(Reason::kUnsupportedField, row, other_type(row));
      continue;
    }
    expect_read(value(row));
    expect_refused(Reason::kUnknownField, row, other_type(row));
    const bool is_single =
        row.rule != Rule::kIgnore && row.kind != Kind::kNumbers && row.kind != Kind::kRepeatedBytes;
    if (is_single) {
      expect_refused(Reason::kMalformed, row, value(row) + value(row));
    } else {
      expect_read(value(row) + value(row));
    }
    if (row.kind == Kind::kNumbers) {
      expect_read(number(row.number, 0) + packed(row.number, {0, 0}));
      expect_refused(Reason::kUnknownField, row, bytes(row.number, "\x80"));
    }
  }
}

TEST_P(Tables, TakesEachValueAsItsRowSays) {
  for (const Row& row : GetParam().rows) {
    if (row.kind == Kind::kFlag && row.rule == Rule::kRead) {
      expect_read(number(row.number, 1));
      expect_refused(Reason::kUnsupportedField, row, number(row.number, 2));
    }
    if (row.rule == Rule::kUnset) {
      expect_refused(Reason::kUnsupportedField, row,
                     is_number(row.kind) ? number(row.number, 1) : bytes(row.number, "\x01"));
    }
  }
}

TEST_P(Tables, RefusesEveryOtherField) {
  for (std::uint32_t field = 1; field < kBeyondEveryTable; ++field) {
    if (std::ranges::find(GetParam().rows, field, &Row::number) != GetParam().rows.end()) {
      continue;
    }
    for (const std::string& text : {number(field, 0), bytes(field, "")}) {
      EXPECT_EQ(
          test::refusal([&] { GetParam().read(text); }),
          "a message has field " + std::to_string(field) + ", which this cyxla does not know");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Tables, testing::ValuesIn(kTables),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cyxla::direct

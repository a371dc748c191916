// SPDX-License-Identifier: Apache-2.0
#include "runtime/program_file.h"

#include <bit>
#include <cstddef>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"

namespace cyxla::runtime {
namespace {

// The first byte is invalid in text; the last one changes when the file is transferred as text.
constexpr std::string_view kMagic(
    "\x89"
    "CYXLAP\n",
    8);
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kDigestAt = 32;
constexpr std::size_t kHeaderSize = 64;
constexpr std::size_t kAlignment = 8;
constexpr std::uint32_t kRequired = 1;

constexpr std::uint32_t tag_of(std::string_view letters) {
  std::uint32_t tag = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    tag |= std::uint32_t{static_cast<std::uint8_t>(letters[i])} << (8 * i);
  }
  return tag;
}

constexpr std::uint32_t kArtifact = tag_of("SHLO");
constexpr std::uint32_t kText = tag_of("TEXT");
constexpr std::uint32_t kSignature = tag_of("SIGN");
constexpr std::uint32_t kName = tag_of("NAME");
constexpr std::uint32_t kPlatform = tag_of("PLAT");
constexpr std::uint32_t kCustomCalls = tag_of("CUST");
constexpr std::uint32_t kFlops = tag_of("FLOP");
constexpr std::uint32_t kVersions = tag_of("VERS");

[[noreturn]] void refuse(const std::string& reason) {
  throw Error(ErrorCode::kArgument, "", reason);
}

template <typename Unsigned>
void append(std::string& out, Unsigned value) {
  static_assert(std::is_unsigned_v<Unsigned>);
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out += static_cast<char>(value >> (8 * i) & 0xff);
  }
}

std::uint32_t checked_u32(std::size_t value, const char* what) {
  if (value > std::numeric_limits<std::uint32_t>::max()) {
    refuse(std::string(what) + " is " + std::to_string(value) +
           ", more than the 32 bits that a program file has for it");
  }
  return static_cast<std::uint32_t>(value);
}

void append_string(std::string& out, std::string_view text) {
  append(out, checked_u32(text.size(), "the length of a name"));
  out += text;
}

void append_array(std::string& out, const NamedArray& array) {
  append(out, static_cast<std::uint32_t>(array.type.element_type));
  append(out, checked_u32(array.type.dimensions.size(), "the number of dimensions"));
  for (const std::int64_t dimension : array.type.dimensions) {
    append(out, static_cast<std::uint64_t>(dimension));
  }
  append_string(out, array.name);
}

std::string signature_section(const ProgramFile& program) {
  std::string out;
  append(out, checked_u32(program.inputs.size(), "the number of inputs"));
  append(out, checked_u32(program.outputs.size(), "the number of outputs"));
  for (const NamedArray& input : program.inputs) {
    append_array(out, input);
  }
  for (const NamedArray& output : program.outputs) {
    append_array(out, output);
  }
  return out;
}

std::string strings_section(const std::vector<std::string_view>& strings, std::size_t count) {
  std::string out;
  append(out, checked_u32(count, "the number of entries"));
  for (const std::string_view text : strings) {
    append_string(out, text);
  }
  return out;
}

// Collects sections behind a header that finish() fills in.
class Writer {
 public:
  void add(std::uint32_t tag, std::uint32_t flags, std::string_view content) {
    append(out_, tag);
    append(out_, flags);
    append(out_, static_cast<std::uint64_t>(content.size()));
    out_ += content;
    out_.resize((out_.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
    ++num_sections_;
  }

  std::string finish() && {
    std::string header(kMagic);
    append(header, kFormatVersion);
    append(header, num_sections_);
    append(header, static_cast<std::uint64_t>(out_.size()));
    header.resize(kDigestAt, '\0');
    out_.replace(0, kDigestAt, header);
    const Sha256Digest digest = digest_of(out_);
    for (std::size_t i = 0; i < digest.size(); ++i) {
      out_[kDigestAt + i] = static_cast<char>(digest[i]);
    }
    return std::move(out_);
  }

  // Hashes everything except the digest's own bytes.
  static Sha256Digest digest_of(std::string_view file) {
    Sha256 hash;
    hash.update(file.substr(0, kDigestAt));
    hash.update(file.substr(kHeaderSize));
    return hash.finish();
  }

 private:
  std::string out_ = std::string(kHeaderSize, '\0');
  std::uint32_t num_sections_ = 0;
};

// Takes values from the front of some bytes, and refuses bytes that end too early.
class Reader {
 public:
  Reader(std::string_view bytes, std::string where) : rest_(bytes), where_(std::move(where)) {}

  std::string_view take(std::uint64_t size_bytes) {
    if (size_bytes > rest_.size()) {
      refuse(where_ + " is broken: it needs " + std::to_string(size_bytes) + " bytes where " +
             std::to_string(rest_.size()) + " are left");
    }
    const std::string_view taken = rest_.substr(0, size_bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  template <typename Unsigned>
  Unsigned number() {
    Unsigned value = 0;
    const std::string_view bytes = take(sizeof value);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      value |= static_cast<Unsigned>(static_cast<std::uint8_t>(bytes[i])) << (8 * i);
    }
    return value;
  }

  // Reads the number of entries that follow, each of at least `least_bytes`.
  std::size_t count(std::size_t least_bytes) {
    const auto value = number<std::uint32_t>();
    if (value > rest_.size() / least_bytes) {
      refuse(where_ + " is broken: " + std::to_string(value) + " entries do not fit into " +
             std::to_string(rest_.size()) + " bytes");
    }
    return value;
  }

  std::string string() { return std::string(take(number<std::uint32_t>())); }

  void expect_end() const {
    if (!rest_.empty()) {
      refuse(where_ + " is broken: " + counted(rest_.size(), "byte") + " left over");
    }
  }

 private:
  std::string_view rest_;
  std::string where_;
};

constexpr std::size_t kLeastArrayBytes = 12;
constexpr std::size_t kLeastStringBytes = 4;

NamedArray read_array(Reader& reader) {
  NamedArray array;
  array.type.element_type = static_cast<std::int32_t>(reader.number<std::uint32_t>());
  const std::size_t rank = reader.count(sizeof(std::int64_t));
  array.type.dimensions.reserve(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    array.type.dimensions.push_back(static_cast<std::int64_t>(reader.number<std::uint64_t>()));
  }
  array.name = reader.string();
  try {
    array.type.size_bytes();
  } catch (const Error& error) {
    refuse("its array " + array.name + " is invalid: " + error.what());
  }
  return array;
}

void read_signature(Reader reader, ProgramFile& program) {
  // Each count is checked without the other's entries; if they do not fit together, reading fails.
  const std::size_t num_inputs = reader.count(kLeastArrayBytes);
  const std::size_t num_outputs = reader.count(kLeastArrayBytes);
  for (std::size_t i = 0; i < num_inputs; ++i) {
    program.inputs.push_back(read_array(reader));
  }
  for (std::size_t i = 0; i < num_outputs; ++i) {
    program.outputs.push_back(read_array(reader));
  }
  reader.expect_end();
}

void read_custom_calls(Reader reader, ProgramFile& program) {
  for (std::size_t left = reader.count(kLeastStringBytes); left > 0; --left) {
    program.custom_call_targets.push_back(reader.string());
  }
  reader.expect_end();
}

void read_versions(Reader reader, ProgramFile& program) {
  for (std::size_t left = reader.count(2 * kLeastStringBytes); left > 0; --left) {
    const std::string what = reader.string();
    std::string version = reader.string();
    if (what == "stablehlo") {
      program.stablehlo_version = std::move(version);
    } else if (what == "jax") {
      program.jax_version = std::move(version);
    } else if (what == "cyxla") {
      program.cyxla_version = std::move(version);
    }
  }
  reader.expect_end();
}

std::string printable(std::uint32_t tag) {
  std::string text;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto letter = static_cast<char>(tag >> (8 * i) & 0xff);
    text += letter > ' ' && letter < 0x7f ? letter : '?';
  }
  return text;
}

void read_section(std::uint32_t tag, std::uint32_t flags, std::string_view content,
                  ProgramFile& program) {
  const Reader reader(content, "its section " + printable(tag));
  switch (tag) {
    case kArtifact:
      program.artifact = content;
      return;
    case kText:
      program.text = content;
      return;
    case kName:
      program.name = content;
      return;
    case kPlatform:
      program.platform = content;
      return;
    case kSignature:
      return read_signature(reader, program);
    case kCustomCalls:
      return read_custom_calls(reader, program);
    case kVersions:
      return read_versions(reader, program);
    case kFlops: {
      Reader number = reader;
      program.flops = std::bit_cast<double>(number.number<std::uint64_t>());
      return number.expect_end();
    }
    default:
      if ((flags & kRequired) != 0) {
        refuse("it needs the section " + printable(tag) +
               ", which this cyxla does not"
               " know; upgrade cyxla, or save the program again with this one");
      }
  }
}

// Checks the header and returns the number of sections.
std::uint32_t read_header(std::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    const bool cut_off = bytes.size() < kMagic.size() && kMagic.starts_with(bytes);
    refuse(bytes.empty() ? "it is empty"
           : cut_off     ? "it is cut off within its first bytes"
                         : "it is not a cyxla program file; write one with Program.save");
  }
  Reader header(bytes.substr(kMagic.size()), "its header");
  const auto version = header.number<std::uint32_t>();
  if (version != kFormatVersion) {
    refuse("its format is version " + std::to_string(version) + ", but this cyxla reads version " +
           std::to_string(kFormatVersion) +
           "; upgrade cyxla, or save the program again with this one");
  }
  const auto num_sections = header.number<std::uint32_t>();
  const auto size_bytes = header.number<std::uint64_t>();
  if (bytes.size() < kHeaderSize || size_bytes != bytes.size()) {
    refuse("it has " + std::to_string(bytes.size()) + " bytes, but its header says " +
           std::to_string(size_bytes) + ": it is cut off, or something follows it; copy it again");
  }
  const Sha256Digest digest = Writer::digest_of(bytes);
  for (std::size_t i = 0; i < digest.size(); ++i) {
    if (static_cast<std::uint8_t>(bytes[kDigestAt + i]) != digest[i]) {
      refuse(
          "it is damaged: its checksum does not match; copy it again, or save the program again");
    }
  }
  return num_sections;
}

}  // namespace

std::string write_program_file(const ProgramFile& program) {
  Writer writer;
  writer.add(kName, 0, program.name);
  writer.add(kPlatform, kRequired, program.platform);
  writer.add(kVersions, kRequired,
             strings_section({"stablehlo", program.stablehlo_version, "jax", program.jax_version,
                              "cyxla", program.cyxla_version},
                             3));
  writer.add(kSignature, kRequired, signature_section(program));
  const std::vector<std::string_view> targets(program.custom_call_targets.begin(),
                                              program.custom_call_targets.end());
  writer.add(kCustomCalls, kRequired, strings_section(targets, targets.size()));
  if (program.flops) {
    std::string flops;
    append(flops, std::bit_cast<std::uint64_t>(*program.flops));
    writer.add(kFlops, 0, flops);
  }
  writer.add(kArtifact, kRequired, program.artifact);
  writer.add(kText, 0, program.text);
  return std::move(writer).finish();
}

ProgramFile read_program_file(std::string_view bytes) {
  const std::uint32_t num_sections = read_header(bytes);
  Reader sections(bytes.substr(kHeaderSize), "its list of sections");
  ProgramFile program;
  std::set<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < num_sections; ++i) {
    const auto tag = sections.number<std::uint32_t>();
    const auto flags = sections.number<std::uint32_t>();
    const std::string_view content = sections.take(sections.number<std::uint64_t>());
    sections.take((kAlignment - content.size() % kAlignment) % kAlignment);
    if (!seen.insert(tag).second) {
      refuse("it has two sections " + printable(tag) + "; save the program again");
    }
    read_section(tag, flags, content, program);
  }
  sections.expect_end();
  for (const std::uint32_t tag :
       {kName, kPlatform, kVersions, kSignature, kCustomCalls, kArtifact, kText}) {
    if (!seen.contains(tag)) {
      refuse("it lacks the section " + printable(tag) + "; save the program again");
    }
  }
  if (program.stablehlo_version.empty()) {
    refuse("it does not give its StableHLO version; save the program again");
  }
  return program;
}

}  // namespace cyxla::runtime

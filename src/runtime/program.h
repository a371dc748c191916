// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cyxla/cyxla.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_memory.h"
#include "direct/load/executable.h"
#include "direct/read/program_facts.h"
#include "pjrt/client.h"
#include "pjrt/executable.h"
#include "runtime/context.h"
#include "runtime/signature.h"

namespace cyxla::runtime {

// Throws Error (kCompile) where the compiled code takes other inputs than the signature declares,
// destinations of outputs in place included.
void check_inputs(const std::vector<pjrt::ValueType>& compiled, const Signature& signature);

// A compiled program and the spec that callers see. Counted: the Python Executable and each
// prepared call own it, each retain() of the spec keeps it; the last of all to go hands it to the
// runtime, which deletes it when no call is in flight. Any thread may execute it. After close() its
// memory stays, its PJRT objects are gone.
class Program {
 public:
  enum class State : std::uint8_t { kOpen, kDropped, kShutDown };

  // Takes the signature as declared; throws Error (kCompile) when the plugin's outputs differ from
  // it.
  Program(const pjrt::Client& client, Capabilities capabilities, pjrt::LoadedExecutable executable,
          Signature signature);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  static Program& of(const cyxla_program_spec& spec) noexcept {
    return *static_cast<Program*>(const_cast<void*>(spec.impl));
  }
  // Only before the program is known to others: which route it takes and why, in a sentence.
  void set_direct(std::unique_ptr<direct::Executable> executable, bool is_short) noexcept;
  void set_route_reason(std::string reason) { route_reason_ = std::move(reason); }

  const cyxla_program_spec& spec() const noexcept { return spec_; }
  const std::string& route_reason() const noexcept { return route_reason_; }
  // Whether a call is direct and takes less time than giving the GIL back and taking it.
  bool is_short() const noexcept { return is_short_; }
  // Of a program that only the plugin runs; nothing where they cannot be read, and for a direct
  // one.
  const std::optional<direct::ProgramFacts>& facts() const noexcept { return facts_; }
  void set_facts(direct::ProgramFacts facts) { facts_ = std::move(facts); }
  const pjrt::LoadedExecutable& executable() const noexcept { return executable_; }
  const Signature& signature() const noexcept { return signature_; }

  void add_owner() noexcept { references_.fetch_add(kOwner, std::memory_order_relaxed); }
  // True for the last reference.
  [[nodiscard]] bool drop_owner() noexcept {
    return references_.fetch_sub(kOwner, std::memory_order_acq_rel) == kOwner;
  }
  // Callers count these themselves, so they are counted apart from the owners.
  void retain_spec() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  enum class Release : std::uint8_t { kOthersRemain, kWasLast, kNotRetained };
  [[nodiscard]] Release release_spec() noexcept;

  State state() const noexcept { return state_.load(std::memory_order_acquire); }

  // The calling thread's context, made on its first call; null when memory ran out or the program
  // is closed.
  [[nodiscard]] Context* thread_context() noexcept;
  // A context of the caller's own, until drop_context(). Null as above.
  [[nodiscard]] Context* make_context() noexcept;
  void drop_context(Context* context) noexcept;

  // Refuses further calls: all that begin after a heavy_fence() that follows.
  void begin_close(State state) noexcept;
  // Whether a call is in flight, on whichever thread.
  bool in_use() noexcept;
  // Destroys the PJRT objects. Only after begin_close(), with no call in flight.
  void close() noexcept;

 private:
  // Contexts by thread slot: segment k holds kFirstSegment << k entries. A segment never moves, so
  // readers need no lock.
  static constexpr std::size_t kFirstSegment = 8;
  static constexpr std::size_t kNumSegments = 40;
  using Segment = std::unique_ptr<std::atomic<Context*>[]>;

  // What the spec says of the inputs or of the outputs, an entry for each. Points into the
  // signature.
  struct SpecArrays {
    SpecArrays() = default;
    // `array_names` is empty or has a name for each. Throws as ArrayType::size_bytes().
    SpecArrays(const std::vector<ArrayType>& arrays, const std::vector<std::string>& array_names);

    std::vector<std::int32_t> types;
    std::vector<std::size_t> elements, bytes, ranks;
    std::vector<const std::int64_t*> dimensions;
    std::vector<const char*> names;
  };

  [[nodiscard]] std::atomic<Context*>* slot_entry(std::size_t slot, bool create);
  void fill_spec();

  const pjrt::Client& client_;
  Capabilities capabilities_;
  pjrt::LoadedExecutable executable_;
  std::unique_ptr<direct::Executable> direct_;
  std::string route_reason_;
  bool is_short_ = false;
  std::optional<direct::ProgramFacts> facts_;
  const Signature signature_;
  SpecArrays input_arrays_, output_arrays_;
  alignas(kAlignment) cyxla_program_spec spec_ = {};  // what a call reads is in one cache line

  static constexpr std::uint64_t kOwner = std::uint64_t{1} << 32;
  std::atomic<std::uint64_t> references_{kOwner};  // owners, and in the lower half retained specs
  std::atomic<State> state_{State::kOpen};
  std::array<std::atomic<std::atomic<Context*>*>, kNumSegments> segments_ = {};
  std::mutex mutex_;  // guards the two below; never held while waiting
  std::vector<Segment> owned_segments_;
  std::vector<std::unique_ptr<Context>> contexts_;
};

}  // namespace cyxla::runtime

// SPDX-License-Identifier: Apache-2.0
#include "direct/load/code.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "direct/load/elf_object.h"
#include "direct/load/perf_map.h"
#include "direct/load/system.h"
#include "direct/refusal.h"

namespace cyxla::direct {
namespace {

#if defined(CYXLA_CALLS_KERNELS)
constexpr bool kIsSupported = true;
#else
constexpr bool kIsSupported = false;
#endif

constexpr std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The offsets of all sections: code first, then data on pages of its own.
struct Layout {
  std::vector<std::vector<std::size_t>> offsets;  // by object, by section
  std::size_t code_bytes = 0;
  std::size_t size_bytes = 0;
};

Layout lay_out(const std::vector<ElfObject>& objects, std::size_t page_bytes) {
  Layout layout;
  for (const ElfObject& object : objects) {
    layout.offsets.emplace_back(object.sections().size());
  }
  for (const bool is_code : {true, false}) {
    for (std::size_t i = 0; i < objects.size(); ++i) {
      for (std::size_t k = 0; k < objects[i].sections().size(); ++k) {
        const ElfObject::Section& section = objects[i].sections()[k];
        if (section.is_code == is_code) {
          layout.size_bytes = round_up(layout.size_bytes, section.alignment);
          layout.offsets[i][k] = layout.size_bytes;
          layout.size_bytes += section.contents.size();
        }
      }
    }
    layout.size_bytes = round_up(layout.size_bytes, page_bytes);
    if (is_code) {
      layout.code_bytes = layout.size_bytes;
    }
  }
  return layout;
}

void protect(std::byte* memory, std::size_t size_bytes, int protection) {
  if (size_bytes > 0 && mprotect(memory, size_bytes, protection) != 0) {
    throw Refusal(Reason::kMemory, std::string("the system does not allow executable memory (") +
                                       std::strerror(errno) + ")");
  }
}

}  // namespace

void Unmap::operator()(std::byte* memory) const noexcept { munmap(memory, size_bytes); }

Code::Code(const std::vector<std::string>& objects, const ExternalSymbols& symbols) {
  if (!kIsSupported) {
    throw Refusal(Reason::kPlatform,
                  "kernels can be called directly only on x86-64 Linux with the GNU C library");
  }
  const std::vector<ElfObject> parts(objects.begin(), objects.end());
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const Layout layout = lay_out(parts, page_bytes);
  if (layout.size_bytes == 0) {
    return;
  }
  void* mapped =
      mmap(nullptr, layout.size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    throw Refusal(Reason::kMemory,
                  "cannot allocate " + std::to_string(layout.size_bytes) + " bytes for kernels");
  }
  memory_ =
      std::unique_ptr<std::byte, Unmap>(static_cast<std::byte*>(mapped), Unmap{layout.size_bytes});
  PerfMap perf_map;

  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ElfObject& object = parts[i];
    const auto address_of = [&](std::size_t section, std::size_t offset) {
      return memory_.get() + layout.offsets[i][section] + offset;
    };
    for (std::size_t k = 0; k < object.sections().size(); ++k) {
      const std::string_view contents = object.sections()[k].contents;
      if (!contents.empty()) {
        std::memcpy(address_of(k, 0), contents.data(), contents.size());
      }
    }
    std::vector<std::uint64_t> addresses;
    for (const ElfObject::Symbol& symbol : object.symbols()) {
      void* address = symbol.section ? address_of(*symbol.section, symbol.offset)
                                     : symbols.address(symbol.name);
      addresses.push_back(reinterpret_cast<std::uintptr_t>(address));
      if (symbol.is_kernel) {
        if (!kernels_.emplace(symbol.name, reinterpret_cast<KernelFunction*>(address)).second) {
          throw Refusal(Reason::kSymbol,
                        "two object files define the kernel " + std::string(symbol.name));
        }
        perf_map.add(address, symbol.size_bytes, symbol.name);
      }
    }
    for (const ElfObject::Relocation& relocation : object.relocations()) {
      const std::uint64_t value = addresses[relocation.symbol] + relocation.addend;
      std::memcpy(address_of(relocation.section, relocation.offset), &value, sizeof(value));
    }
  }
  protect(memory_.get(), layout.code_bytes, PROT_READ | PROT_EXEC);
  protect(memory_.get() + layout.code_bytes, layout.size_bytes - layout.code_bytes, PROT_READ);
}

KernelFunction* Code::kernel(std::string_view name) const {
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) {
    throw Refusal(Reason::kSymbol, "no object file defines the kernel " + std::string(name));
  }
  return found->second;
}

}  // namespace cyxla::direct

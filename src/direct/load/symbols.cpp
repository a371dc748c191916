// SPDX-License-Identifier: Apache-2.0
#include "direct/load/symbols.h"

#include <algorithm>
#include <array>

#include "direct/load/system.h"
#include "direct/refusal.h"

#if defined(CYXLA_CALLS_KERNELS)
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "base/scope_guard.h"
#endif

namespace cyxla::direct {
namespace {

// Functions without side effects. Those for float have the suffix 'f'.
constexpr std::array<std::string_view, 42> kMathematics = {
    "acos",     "acosh",  "asin", "asinh",     "atan", "atan2",     "atanh", "cbrt",  "ceil",
    "copysign", "cos",    "cosh", "erf",       "erfc", "exp",       "exp2",  "expm1", "fabs",
    "floor",    "fma",    "fmax", "fmin",      "fmod", "frexp",     "hypot", "ldexp", "log",
    "log10",    "log1p",  "log2", "nearbyint", "pow",  "remainder", "rint",  "round", "roundeven",
    "sin",      "sincos", "sinh", "sqrt",      "tan",  "tanh"};
constexpr std::array<std::string_view, 5> kOthers = {"memcpy", "memmove", "memset", "tgamma",
                                                     "trunc"};

bool is_allowed(std::string_view name) noexcept {
  const auto has = [](const auto& list, std::string_view wanted) {
    return std::find(list.begin(), list.end(), wanted) != list.end();
  };
  return has(kMathematics, name) || has(kOthers, name) || name == "truncf" ||
         (name.ends_with('f') && has(kMathematics, name.substr(0, name.size() - 1)));
}

#if defined(CYXLA_CALLS_KERNELS)

// The imports in the dynamic section of a loaded library.
class Imports {
 public:
  explicit Imports(const link_map& library) {
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) value = entry->d_un.d_ptr;
      // The loader makes these absolute, but not in every library.
      const ElfW(Addr) address = value < library.l_addr ? value + library.l_addr : value;
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols_ = reinterpret_cast<const ElfW(Sym)*>(address);
          break;
        case DT_STRTAB:
          strings_ = reinterpret_cast<const char*>(address);
          break;
        case DT_GNU_HASH:
          hash_ = reinterpret_cast<const std::uint32_t*>(address);
          break;
        case DT_VERSYM:
          versions_ = reinterpret_cast<const ElfW(Half)*>(address);
          break;
        case DT_VERNEED:
          needed_ = reinterpret_cast<const char*>(address);
          break;
        case DT_VERNEEDNUM:
          num_needed_ = entry->d_un.d_val;
          break;
        default:
          break;
      }
    }
  }

  // Calls `function(name, version)` for each versioned symbol that the library imports.
  template <typename Function>
  void for_each(Function function) const {
    if (symbols_ == nullptr || strings_ == nullptr || hash_ == nullptr || versions_ == nullptr ||
        needed_ == nullptr) {
      return;
    }
    // The hash table has the symbols that the library defines; the imports come before them.
    const std::uint32_t first_defined = hash_[1];
    for (std::uint32_t i = 1; i < first_defined; ++i) {
      if (symbols_[i].st_shndx != SHN_UNDEF) {
        continue;
      }
      if (const char* version = version_name(versions_[i] & 0x7fff)) {
        function(strings_ + symbols_[i].st_name, version);
      }
    }
  }

 private:
  const char* version_name(unsigned index) const {
    const char* file = needed_;
    for (std::size_t i = 0; i < num_needed_; ++i) {
      const auto* need = reinterpret_cast<const ElfW(Verneed)*>(file);
      const char* auxiliary = file + need->vn_aux;
      for (unsigned k = 0; k < need->vn_cnt; ++k) {
        const auto* version = reinterpret_cast<const ElfW(Vernaux)*>(auxiliary);
        if (version->vna_other == index) {
          return strings_ + version->vna_name;
        }
        auxiliary += version->vna_next;
      }
      file += need->vn_next;
    }
    return nullptr;
  }

  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const std::uint32_t* hash_ = nullptr;
  const ElfW(Half) * versions_ = nullptr;
  const char* needed_ = nullptr;
  std::size_t num_needed_ = 0;
};

#endif

}  // namespace

#if defined(CYXLA_CALLS_KERNELS)

ExternalSymbols ExternalSymbols::of_plugin(const std::string& path) {
  ExternalSymbols result;
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) {
    return result;
  }
  const ScopeGuard close([handle] { dlclose(handle); });
  link_map* library = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &library) != 0) {
    return result;
  }
  Imports(*library).for_each([&](const char* name, const char* version) {
    if (!is_allowed(name)) {
      return;
    }
    void* address = dlvsym(handle, name, version);
    const auto [known, is_new] = result.addresses_.emplace(name, address);
    if (!is_new && known->second != address) {
      // The plugin is bound to two versions: the one for kernels cannot be determined.
      known->second = nullptr;
    }
  });
  return result;
}

#else

ExternalSymbols ExternalSymbols::of_plugin(const std::string&) { return {}; }

#endif

void* ExternalSymbols::address(std::string_view name) const {
  if (!is_allowed(name)) {
    throw Refusal(Reason::kSymbol,
                  "a kernel calls " + std::string(name) +
                      ", which is not an allowed function of the C or mathematics library");
  }
  const auto found = addresses_.find(name);
  if (found == addresses_.end() || found->second == nullptr) {
    throw Refusal(Reason::kSymbol, "a kernel calls " + std::string(name) +
                                       ", but the plugin's version of it cannot be determined");
  }
  return found->second;
}

}  // namespace cyxla::direct

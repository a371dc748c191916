// SPDX-License-Identifier: Apache-2.0
// Converts arrays of numbers between element types as NumPy does, for the pairs that NumPy's
// same_kind rule allows. cyxla.dtypes handles what needs NumPy's warnings or raises an error.
#pragma once

#include <Python.h>
#include <numpy/arrayobject.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cyxla::glue {

// A NumPy bool; its byte may have any value.
struct Bool {
  std::uint8_t byte;
};

using ElementTypes = std::tuple<Bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, float,
                                double, std::complex<float>, std::complex<double>>;

inline constexpr std::size_t kNumElementTypes = std::tuple_size_v<ElementTypes>;

// Index into ElementTypes; the floats of 8 and 16 bits are kOther.
enum Element : std::size_t {
  kBool,
  kS8,
  kS16,
  kS32,
  kS64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF32,
  kF64,
  kC64,
  kC128,
  kOther
};

constexpr Element integer_element(std::size_t size_bytes, bool is_signed) noexcept {
  const Element first = is_signed ? kS8 : kU8;
  return static_cast<Element>(first + (size_bytes == 1   ? 0
                                       : size_bytes == 2 ? 1
                                       : size_bytes == 4 ? 2
                                                         : 3));
}

inline Element element_of(int type_number) noexcept {
  switch (type_number) {
    case NPY_BOOL:
      return kBool;
    case NPY_BYTE:
      return kS8;
    case NPY_UBYTE:
      return kU8;
    case NPY_SHORT:
      return kS16;
    case NPY_USHORT:
      return kU16;
    case NPY_INT:
      return kS32;
    case NPY_UINT:
      return kU32;
    case NPY_LONG:
      return integer_element(sizeof(long), true);
    case NPY_ULONG:
      return integer_element(sizeof(unsigned long), false);
    case NPY_LONGLONG:
      return kS64;
    case NPY_ULONGLONG:
      return kU64;
    case NPY_FLOAT:
      return kF32;
    case NPY_DOUBLE:
      return kF64;
    case NPY_CFLOAT:
      return kC64;
    case NPY_CDOUBLE:
      return kC128;
    default:
      return kOther;
  }
}

template <typename T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// Position in NumPy's order bool < unsigned < signed < float < complex.
template <typename T>
inline constexpr int kKind = std::is_same_v<T, Bool>       ? 0
                             : kIsComplex<T>               ? 4
                             : std::is_floating_point_v<T> ? 3
                             : std::is_signed_v<T>         ? 2
                                                           : 1;

template <typename T>
inline constexpr std::size_t kPartSize = kIsComplex<T> ? sizeof(T) / 2 : sizeof(T);

template <typename Unsigned>
Unsigned bits_of(const auto& value) noexcept {
  Unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Whether a cast raises no floating-point exception that NumPy would report, as it does for
// overflow, subnormal results and signalling NaNs.
inline bool casts_quietly(double value, float /*target*/) noexcept {
  constexpr auto kSmallest = std::uint64_t{0x3810000000000000};  // smallest normal float
  constexpr auto kLargest = std::uint64_t{0x47EFFFFFE0000000};   // largest float
  constexpr auto kInfinity = std::uint64_t{0x7FF0000000000000};
  constexpr auto kQuietNan = std::uint64_t{0x7FF8000000000000};
  const std::uint64_t magnitude = bits_of<std::uint64_t>(value) & 0x7FFFFFFFFFFFFFFF;
  return (magnitude - kSmallest <= kLargest - kSmallest) | (magnitude == 0) |
         (magnitude == kInfinity) | (magnitude >= kQuietNan);
}

inline bool casts_quietly(float value, double /*target*/) noexcept {
  const std::uint32_t magnitude = bits_of<std::uint32_t>(value) & 0x7FFFFFFF;
  return (magnitude <= 0x7F800000) | (magnitude >= 0x7FC00000);
}

// False if NumPy would warn or an integer does not fit; `result` is undefined then.
template <typename S, typename T>
bool cast(S value, T& result) noexcept {
  if constexpr (std::is_same_v<S, Bool>) {
    const std::uint8_t truth = value.byte != 0 ? 1 : 0;
    if constexpr (std::is_same_v<T, Bool>) {
      result.byte = truth;
      return true;
    } else {
      return cast(truth, result);
    }
  } else if constexpr (std::is_same_v<S, T>) {
    result = value;
    return true;
  } else if constexpr (kIsComplex<T>) {
    typename T::value_type real{};
    typename T::value_type imaginary{};
    bool is_quiet = true;
    if constexpr (kIsComplex<S>) {
      is_quiet = cast(value.imag(), imaginary) & cast(value.real(), real);
    } else {
      is_quiet = cast(value, real);
    }
    result = T(real, imaginary);
    return is_quiet;
  } else if constexpr (std::is_integral_v<T>) {
    result = static_cast<T>(value);
    return std::in_range<T>(value);
  } else if constexpr (std::is_integral_v<S>) {
    result = static_cast<T>(value);
    return true;
  } else {
    result = static_cast<T>(value);
    return casts_quietly(value, result);
  }
}

template <std::size_t kSize>
void swap_bytes(char* bytes) noexcept {
  for (std::size_t i = 0; i < kSize / 2; ++i) {
    std::swap(bytes[i], bytes[kSize - 1 - i]);
  }
}

template <typename S, bool kSwap>
S load(const char* source) noexcept {
  S value;
  if constexpr (kSwap && kPartSize < S >> 1) {
    std::array<char, sizeof(S)> bytes;
    std::memcpy(bytes.data(), source, sizeof(S));
    for (std::size_t part = 0; part < sizeof(S); part += kPartSize<S>) {
      swap_bytes<kPartSize<S>>(bytes.data() + part);
    }
    std::memcpy(&value, bytes.data(), sizeof(S));
  } else {
    std::memcpy(&value, source, sizeof(S));
  }
  return value;
}

// Converts `count` elements, `stride` bytes apart and at any address, to a dense aligned row. False
// if cyxla.dtypes has to convert.
using Row = bool (*)(const char* source, npy_intp stride, char* target, npy_intp count) noexcept;

template <typename S, typename T, bool kSwap>
bool convert_row(const char* source, npy_intp stride, char* target, npy_intp count) noexcept {
  T* const results = reinterpret_cast<T*>(target);
  if constexpr (std::is_same_v<S, T> && !kSwap && !std::is_same_v<S, Bool>) {
    if (stride == sizeof(S)) {
      std::memcpy(target, source, static_cast<std::size_t>(count) * sizeof(S));
      return true;
    }
  }
  bool is_quiet = true;
  if (stride == sizeof(S)) {  // a separate loop that the compiler vectorizes
    for (npy_intp i = 0; i < count; ++i) {
      is_quiet &= cast(load<S, kSwap>(source + i * static_cast<npy_intp>(sizeof(S))), results[i]);
    }
  } else {
    for (npy_intp i = 0; i < count; ++i) {
      is_quiet &= cast(load<S, kSwap>(source + i * stride), results[i]);
    }
  }
  return is_quiet;
}

template <std::size_t kSource, std::size_t kTarget, bool kSwap>
constexpr Row row_of() noexcept {
  using S = std::tuple_element_t<kSource, ElementTypes>;
  using T = std::tuple_element_t<kTarget, ElementTypes>;
  if constexpr (kKind<S> <= kKind<T>) {
    return &convert_row<S, T, kSwap>;
  } else {
    return nullptr;
  }
}

using RowTable = std::array<Row, kNumElementTypes * kNumElementTypes>;

template <bool kSwap, std::size_t... kIndices>
constexpr RowTable make_rows(std::index_sequence<kIndices...> /*indices*/) noexcept {
  return {row_of<kIndices / kNumElementTypes, kIndices % kNumElementTypes, kSwap>()...};
}

inline constexpr std::array<RowTable, 2> kRows = {
    make_rows<false>(std::make_index_sequence<kNumElementTypes * kNumElementTypes>()),
    make_rows<true>(std::make_index_sequence<kNumElementTypes * kNumElementTypes>())};

// Null for a pair that NumPy's same_kind rule forbids.
inline Row row_for(Element source, Element target, bool is_swapped) noexcept {
  return source == kOther || target == kOther
             ? nullptr
             : kRows[is_swapped ? 1 : 0][source * kNumElementTypes + target];
}

// Converts an array with any strides to a dense row-major one; returns the same as a Row.
inline bool convert_array(Row row, const char* source, int rank, const npy_intp* dimensions,
                          const npy_intp* strides, char* target, std::size_t itemsize) noexcept {
  std::array<npy_intp, NPY_MAXDIMS> sizes;
  std::array<npy_intp, NPY_MAXDIMS> steps;
  int depth = 0;
  for (int k = 0; k < rank; ++k) {
    if (dimensions[k] == 0) {
      return true;
    }
    if (dimensions[k] == 1) {
      continue;
    }
    if (depth > 0 && steps[depth - 1] == strides[k] * dimensions[k]) {
      sizes[depth - 1] *= dimensions[k];  // rows without a gap between them
      steps[depth - 1] = strides[k];
    } else {
      sizes[depth] = dimensions[k];
      steps[depth] = strides[k];
      ++depth;
    }
  }
  if (depth == 0) {
    return row(source, 0, target, 1);
  }
  const int last = depth - 1;
  const npy_intp row_bytes = sizes[last] * static_cast<npy_intp>(itemsize);
  std::array<npy_intp, NPY_MAXDIMS> index;
  std::fill_n(index.begin(), depth, 0);
  for (;;) {
    if (!row(source, steps[last], target, sizes[last])) {
      return false;
    }
    target += row_bytes;
    int k = last - 1;
    for (; k >= 0; --k) {
      source += steps[k];
      if (++index[k] < sizes[k]) {
        break;
      }
      source -= steps[k] * sizes[k];
      index[k] = 0;
    }
    if (k < 0) {
      return true;
    }
  }
}

// Whether every byte is 0 or 1.
inline bool are_bools(const void* data, std::size_t count) noexcept {
  const auto* bytes = static_cast<const unsigned char*>(data);
  unsigned char all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    all |= bytes[i];
  }
  return all <= 1;
}

}  // namespace cyxla::glue

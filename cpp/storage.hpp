// What numbers become on their way to a file: half precision, and a checksum.
#pragma once
#include "rows.hpp"

namespace mercer {
namespace MERCER_ISA {

typedef uint16_t half_vector __attribute__((vector_size(2 * lanes<float>)));

// float32 to float16, nearest, ties to even; too large becomes infinite.
inline half_vector to_half(vec<float> v) {
  using I = ivec<float>;
  const I word = bits<I>(v), size = word & 0x7fffffff, sign = (word >> 16) & 0x8000;
  const I normal = (size - 0x38000000 + 0xfff + ((size >> 13) & 1)) >> 13;
  const I small = bits<I>(bits<vec<float>>(size) + 0.5f) - 0x3f000000; // the addition rounds to multiples of 2^-24
  I half = size < 0x38800000 ? small : normal;
  half = size >= 0x47800000 ? (size > 0x7f800000 ? I{} + 0x7e00 : I{} + 0x7c00) : half;
  return __builtin_convertvector(half | sign, half_vector);
}

inline vec<float> from_half(half_vector h) {
  using I = ivec<float>;
  const I word = __builtin_convertvector(h, I);
  const vec<float> size = bits<vec<float>>((word & 0x7fff) << 13) * 0x1p112f;
  const I value = bits<I>(size) | (size >= 65536.0f ? I{} + 0x7f800000 : I{}); // infinite, or not a number
  return bits<vec<float>>(value | ((word & 0x8000) << 16));
}

// out[i] = f(in[i]), vector by vector, of which the last may be short
template <class Vector, class In, class Out, class F> inline void convert(const In* in, Index n, Out* out, F&& f) {
  constexpr int L = lanes<float>;
  const auto step = [&](const In* from, Out* to) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    const auto r = f(v);
    std::memcpy(to, &r, sizeof r);
  };
  Index i = 0;
  for (; i + L <= n; i += L) step(in + i, out + i);
  if (i == n) return;
  In last[L] = {};
  Out result[L];
  std::memcpy(last, in + i, sizeof(In) * size_t(n - i));
  step(last, result);
  std::memcpy(out + i, result, sizeof(Out) * size_t(n - i));
}

inline void narrow(const float* in, Index n, uint16_t* out) { convert<vec<float>>(in, n, out, to_half); }
inline void widen_half(const uint16_t* in, Index n, float* out) { convert<half_vector>(in, n, out, from_half); }

// A checksum that is the same on every machine: 64 lanes of 32-bit words, each step of which can be undone, so that a
// change within one lane's word always shows; then all lanes, the length and the seed mixed into 64 bits.
inline uint64_t checksum(const uint8_t* data, Index bytes, uint64_t seed) {
  typedef uint32_t words __attribute__((vector_size(vector_bytes)));
  constexpr Index stride = 256;
  constexpr int count = int(stride) / vector_bytes;
  words lane[count] = {};
  const auto add = [&](const uint8_t* block) {
#pragma GCC unroll 16
    for (int v = 0; v < count; v++) {
      words word;
      std::memcpy(&word, block + v * vector_bytes, sizeof word);
      lane[v] = (lane[v] ^ word) * 0x9e3779b1u;
      lane[v] ^= lane[v] >> 15;
    }
  };
  Index at = 0;
  for (; at + stride <= bytes; at += stride) add(data + at);
  if (at < bytes) {
    uint8_t rest[stride] = {};
    std::memcpy(rest, data + at, size_t(bytes - at));
    add(rest);
  }
  uint32_t all[stride / 4];
  std::memcpy(all, lane, sizeof all);
  uint64_t sum = scramble(seed ^ uint64_t(bytes));
  for (uint32_t word : all) sum = scramble(sum + word + 0x9e3779b97f4a7c15ull);
  return sum;
}

} // namespace MERCER_ISA
} // namespace mercer

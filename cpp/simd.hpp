// Portable vectors: GCC/Clang vector extensions, sized for the instruction set this file is compiled for.
//
// Everything lives in a namespace named after the instruction set, so that the same source can be compiled
// several times into one library without one version's inline functions replacing another's.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__SSE4_1__)
#include <immintrin.h>
#endif

namespace mercer {
namespace MERCER_ISA {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64, max_rows = 12; // 32 registers: 24 accumulators
#elif defined(__AVX2__)
constexpr int vector_bytes = 32, max_rows = 6; // 16 registers: 12 accumulators
#elif defined(__aarch64__)
constexpr int vector_bytes = 16, max_rows = 12; // 32 registers
#else
constexpr int vector_bytes = 16, max_rows = 6;
#endif

template <class T> struct vector_of;
template <> struct vector_of<float> {
  typedef float type __attribute__((vector_size(vector_bytes)));
  typedef int32_t mask __attribute__((vector_size(vector_bytes)));
};
template <> struct vector_of<double> {
  typedef double type __attribute__((vector_size(vector_bytes)));
  typedef int64_t mask __attribute__((vector_size(vector_bytes)));
};

template <class T> using vec = typename vector_of<T>::type;
template <class T> using ivec = typename vector_of<T>::mask; // integers of the same width
template <class T> constexpr int lanes = vector_bytes / int(sizeof(T));
template <class T> constexpr int panel_width = 2 * lanes<T>; // a register tile is two vectors wide

template <class T> inline vec<T> load(const T* p) {
  vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T> inline void store(T* p, vec<T> v) { std::memcpy(p, &v, sizeof v); }
template <class T> inline vec<T> splat(T a) { return a - vec<T>{}; } // a + 0 would be an addition: -0 + 0 is 0

template <class T> inline void keep_in_register(vec<T>& v) {
#if defined(__AVX512F__)
  asm("" : "+v"(v));
#elif defined(__x86_64__)
  asm("" : "+x"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#else
  (void)v;
#endif
}

template <class To, class From> inline To bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "a reinterpretation keeps the size");
  To r;
  std::memcpy(&r, &v, sizeof r);
  return r;
}

template <class T> inline vec<T> select(ivec<T> mask, vec<T> yes, vec<T> no) { return mask ? yes : no; }

// Where the compiler would take a comparison and a blend for one instruction, it is named. Both return b if a is NaN.
template <class T> inline vec<T> maximum(vec<T> a, vec<T> b) {
  constexpr bool single = std::is_same<T, float>::value;
#if defined(__AVX512F__)
  if constexpr (single) return _mm512_max_ps(a, b); else return _mm512_max_pd(a, b);
#elif defined(__AVX2__)
  if constexpr (single) return _mm256_max_ps(a, b); else return _mm256_max_pd(a, b);
#elif defined(__SSE4_1__)
  if constexpr (single) return _mm_max_ps(a, b); else return _mm_max_pd(a, b);
#else
  return a > b ? a : b;
#endif
}
template <class T> inline vec<T> minimum(vec<T> a, vec<T> b) {
  constexpr bool single = std::is_same<T, float>::value;
#if defined(__AVX512F__)
  if constexpr (single) return _mm512_min_ps(a, b); else return _mm512_min_pd(a, b);
#elif defined(__AVX2__)
  if constexpr (single) return _mm256_min_ps(a, b); else return _mm256_min_pd(a, b);
#elif defined(__SSE4_1__)
  if constexpr (single) return _mm_min_ps(a, b); else return _mm_min_pd(a, b);
#else
  return a < b ? a : b;
#endif
}

template <class T> inline vec<T> absolute(vec<T> v) {
  constexpr auto sign_off = std::is_same<T, float>::value ? 0x7fffffffll : 0x7fffffffffffffffll;
  return bits<vec<T>>(bits<ivec<T>>(v) & decltype(ivec<T>{}[0])(sign_off));
}

// lanes<double> numbers as doubles; the instruction is named, since GCC takes five in its place
template <class T> inline vec<double> widen(const T* p) {
  typedef T narrow __attribute__((vector_size(sizeof(T) * lanes<double>)));
  narrow v;
  std::memcpy(&v, p, sizeof v);
#if defined(__AVX512F__)
  if constexpr (std::is_same<T, float>::value) return _mm512_cvtps_pd(v);
#elif defined(__AVX2__)
  if constexpr (std::is_same<T, float>::value) return _mm256_cvtps_pd(v);
#endif
  return __builtin_convertvector(v, vec<double>);
}

template <class T> inline double sum_lanes(vec<T> v) {
  double total = 0;
  for (int q = 0; q < lanes<T>; q++) total += double(v[q]);
  return total;
}

// ---- elementary functions ---------------------------------------------------------------------------------

// Coefficients of (exp(r) - 1 - r) / r^2 interpolated at Chebyshev nodes for |r| <= ln 2 / 2.
template <class T> struct exp_constants;
template <> struct exp_constants<float> { // relative error 1e-8
  static constexpr float low = -87.3f, high = 88.0f, magic = 12582912.0f; // 1.5 * 2^23 rounds to an integer
  static constexpr float ln2_high = 0.693145752f, ln2_low = 1.42860677e-6f;
  static constexpr int mantissa = 23, degree = 6;
  static constexpr float coefficient[] = {1.0f,           1.0f,           0.5f,           0.166665766661f,
                                          0.041666554213f, 0.00836323288f, 0.00139262508f};
};
template <> struct exp_constants<double> { // relative error 2e-17
  static constexpr double low = -708.0, high = 709.0, magic = 6755399441055744.0;
  static constexpr double ln2_high = 0.693147180369123816490, ln2_low = 1.90821492927058770002e-10;
  static constexpr int mantissa = 52, degree = 11;
  static constexpr double coefficient[] = {1.0,
                                           1.0,
                                           0.50000000000000010314,
                                           0.1666666666666666746,
                                           0.041666666666623820532,
                                           0.0083333333333300381973,
                                           0.0013888888917367080562,
                                           0.00019841269863171556026,
                                           0.000024801521057868205199,
                                           2.7557268276905696187e-6,
                                           2.7620201591031548792e-7,
                                           2.5100472505694996003e-8};
};

// p * 2^k for whole k, with 0 where v is so low that the result is below the smallest normal number.
template <class T> inline vec<T> scale_by_power(vec<T> p, vec<T> k, vec<T> v) {
  using C = exp_constants<T>;
#if defined(__AVX512F__)
  if constexpr (std::is_same<T, float>::value)
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(v, _mm512_set1_ps(C::low), _CMP_GE_OQ), p, k);
  else
    return _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(v, _mm512_set1_pd(C::low), _CMP_GE_OQ), p, k);
#else
  const ivec<T> shift = __builtin_convertvector(k, ivec<T>) << C::mantissa;
  return select<T>(v < C::low, vec<T>{}, bits<vec<T>>(bits<ivec<T>>(p) + shift));
#endif
}

// exp(v): v = k ln 2 + r, |r| <= ln 2 / 2, a polynomial in r, then k into the exponent. Relative error under two units
// in the last place; 0 below the smallest normal number, the largest power of two above the range.
template <class T> inline vec<T> exp(vec<T> v) {
  using C = exp_constants<T>;
  const vec<T> x = minimum<T>(maximum<T>(v, splat<T>(C::low)), splat<T>(C::high));
  const vec<T> k = (x * T(1.4426950408889634) + C::magic) - C::magic;
  const vec<T> r = (x - k * C::ln2_high) - k * C::ln2_low;
  vec<T> p = splat<T>(C::coefficient[C::degree]);
#pragma GCC unroll 16
  for (int j = C::degree - 1; j >= 0; j--) p = p * r + C::coefficient[j];
  return scale_by_power<T>(p, k, v);
}

// tanh(v) = 1 - 2 / (exp(2v) + 1); near zero the series, where the formula would cancel.
template <class T> inline vec<T> tanh(vec<T> v) {
  const vec<T> e = exp<T>(minimum<T>(v, splat<T>(T(22))) * T(2));
  const vec<T> far = T(1) - T(2) / (e + T(1));
  const vec<T> s = v * v;
  const vec<T> near = v * (T(1) - s * (T(1) / 3 - s * (T(2) / 15 - s * (T(17) / 315))));
  return select<T>(absolute<T>(v) < T(std::is_same<T, float>::value ? 0.05 : 0.005), near, far);
}

template <class T> struct log_constants;
template <> struct log_constants<float> {
  static constexpr int32_t exponent_mask = 0x7f800000, half_root = 0x3f3504f3, one = 0x3f800000;
  static constexpr int mantissa = 23, terms = 5;
};
template <> struct log_constants<double> {
  static constexpr int64_t exponent_mask = 0x7ff0000000000000ll, half_root = 0x3fe6a09e667f3bcdll,
                           one = 0x3ff0000000000000ll;
  static constexpr int mantissa = 52, terms = 12;
};

// log(v) for positive normal v: v = 2^e f with f in [sqrt(1/2), sqrt(2)), then 2 atanh((f - 1) / (f + 1)).
template <class T> inline vec<T> log(vec<T> v) {
  using C = log_constants<T>;
  const ivec<T> b = bits<ivec<T>>(v);
  const ivec<T> e = (b - C::half_root) >> C::mantissa;
  const vec<T> f = bits<vec<T>>(b - (e << C::mantissa));
  const vec<T> s = (f - T(1)) / (f + T(1)), s2 = s * s;
  vec<T> p = splat<T>(T(2) / T(2 * C::terms - 1));
#pragma GCC unroll 16
  for (int j = C::terms - 2; j >= 0; j--) p = p * s2 + T(2) / T(2 * j + 1);
  return p * s + __builtin_convertvector(e, vec<T>) * T(0.693147180559945309);
}

// ---- square transposition in registers -----------------------------------------------------------------------

// Interleave the low (or high) halves of every 2s-lane group of a and b in runs of s lanes.
template <class T, int s, bool high> inline vec<T> interleave(vec<T> a, vec<T> b) {
  ivec<T> index{};
#pragma GCC unroll 16
  for (int q = 0; q < lanes<T>; q++) {
    const int group = q / (2 * s) * (2 * s), inside = q % (2 * s);
    index[q] = group + (inside < s ? inside + (high ? s : 0) : lanes<T> + inside - (high ? 0 : s));
  }
#if defined(__clang__)
  vec<T> r{};
  for (int q = 0; q < lanes<T>; q++) r[q] = index[q] < lanes<T> ? a[index[q]] : b[index[q] - lanes<T>];
  return r;
#else
  return __builtin_shuffle(a, b, index);
#endif
}

template <class T, int s> [[gnu::always_inline]] inline void transpose_stage(vec<T> (&v)[lanes<T>]) {
  if constexpr (s < lanes<T>) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; i++)
      if (!(i & s)) {
        const vec<T> low = interleave<T, s, false>(v[i], v[i + s]);
        v[i + s] = interleave<T, s, true>(v[i], v[i + s]);
        v[i] = low;
      }
    transpose_stage<T, 2 * s>(v);
  }
}

// v[i][j] <-> v[j][i]; inlined, so that v stays in registers
template <class T> [[gnu::always_inline]] inline void transpose(vec<T> (&v)[lanes<T>]) { transpose_stage<T, 1>(v); }

// A square of numbers, column by column: out[j * step + i] = rows[i][j].
template <class T> [[gnu::always_inline]] inline void transpose_rows(const T* const (&rows)[lanes<T>], T* out, int64_t step) {
#if defined(__AVX512F__)
  if constexpr (std::is_same<T, float>::value) { // quarters of rows are loaded in place: half the shuffles are left
    for (int g = 0; g < 16; g += 4) {
      __m512 v[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) {
        v[i] = _mm512_castps128_ps512(_mm_loadu_ps(rows[i] + g));
        v[i] = _mm512_mask_broadcast_f32x4(v[i], 0x00f0, _mm_loadu_ps(rows[i + 4] + g));
        v[i] = _mm512_mask_broadcast_f32x4(v[i], 0x0f00, _mm_loadu_ps(rows[i + 8] + g));
        v[i] = _mm512_mask_broadcast_f32x4(v[i], 0xf000, _mm_loadu_ps(rows[i + 12] + g));
      }
      const __m512d low[2] = {_mm512_castps_pd(_mm512_unpacklo_ps(v[0], v[1])),
                              _mm512_castps_pd(_mm512_unpacklo_ps(v[2], v[3]))};
      const __m512d high[2] = {_mm512_castps_pd(_mm512_unpackhi_ps(v[0], v[1])),
                               _mm512_castps_pd(_mm512_unpackhi_ps(v[2], v[3]))};
      _mm512_storeu_ps(out + g * step, _mm512_castpd_ps(_mm512_unpacklo_pd(low[0], low[1])));
      _mm512_storeu_ps(out + (g + 1) * step, _mm512_castpd_ps(_mm512_unpackhi_pd(low[0], low[1])));
      _mm512_storeu_ps(out + (g + 2) * step, _mm512_castpd_ps(_mm512_unpacklo_pd(high[0], high[1])));
      _mm512_storeu_ps(out + (g + 3) * step, _mm512_castpd_ps(_mm512_unpackhi_pd(high[0], high[1])));
    }
    return;
  }
#endif
  vec<T> square[lanes<T>];
#pragma GCC unroll 16
  for (int q = 0; q < lanes<T>; q++) square[q] = load<T>(rows[q]);
  transpose<T>(square);
#pragma GCC unroll 16
  for (int q = 0; q < lanes<T>; q++) store<T>(out + q * step, square[q]);
}

} // namespace MERCER_ISA
} // namespace mercer

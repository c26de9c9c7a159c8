// The Walsh-Hadamard transform (unnormalised), in place, along rows whose length is a power of two.
#pragma once
#include "primitives.hpp"
#include "simd.hpp"

namespace mercer {
namespace MERCER_ISA {

// One stage: pairs `half` apart, half >= lanes.
template <class T> inline void butterflies(T* a, Index n, Index half) {
  for (Index i = 0; i < n; i += 2 * half)
    for (Index j = i; j < i + half; j += lanes<T>) {
      const vec<T> x = load<T>(a + j), y = load<T>(a + j + half);
      store<T>(a + j, x + y);
      store<T>(a + j + half, x - y);
    }
}

// Two stages at once, quarters `quarter` apart: half the traffic.
template <class T> inline void double_butterflies(T* a, Index n, Index quarter) {
  for (Index i = 0; i < n; i += 4 * quarter)
    for (Index j = i; j < i + quarter; j += lanes<T>) {
      const vec<T> p = load<T>(a + j), q = load<T>(a + j + quarter);
      const vec<T> r = load<T>(a + j + 2 * quarter), s = load<T>(a + j + 3 * quarter);
      const vec<T> pq = p + q, p_q = p - q, rs = r + s, r_s = r - s;
      store<T>(a + j, pq + rs);
      store<T>(a + j + quarter, p_q + r_s);
      store<T>(a + j + 2 * quarter, pq - rs);
      store<T>(a + j + 3 * quarter, p_q - r_s);
    }
}

// All stages inside a square of lanes x lanes: butterflies between vectors, before and after a transposition.
template <class T> inline void transform_square(T* a) {
  constexpr int L = lanes<T>;
  vec<T> v[L];
  for (int q = 0; q < L; q++) v[q] = load<T>(a + q * L);
  for (int pass = 0; pass < 2; pass++) {
#pragma GCC unroll 4
    for (int half = 1; half < L; half *= 2)
#pragma GCC unroll 16
      for (int q = 0; q < L; q++)
        if (!(q & half)) {
          const vec<T> x = v[q], y = v[q + half];
          v[q] = x + y;
          v[q + half] = x - y;
        }
    transpose<T>(v);
  }
  for (int q = 0; q < L; q++) store<T>(a + q * L, v[q]);
}

template <class T> inline void transform_scalar(T* a, Index n) {
  for (Index half = 1; half < n; half *= 2)
    for (Index i = 0; i < n; i += 2 * half)
      for (Index j = i; j < i + half; j++) {
        const T x = a[j], y = a[j + half];
        a[j] = x + y;
        a[j + half] = x - y;
      }
}

// Large strides first, down to parts that fit in the first-level cache.
template <class T> inline void transform(T* a, Index n) {
  constexpr Index square = Index(lanes<T>) * lanes<T>, cached = 16384 / sizeof(T);
  if (n < square) return transform_scalar<T>(a, n);
  if (n > cached) {
    double_butterflies<T>(a, n, n / 4);
    for (Index part = 0; part < 4; part++) transform<T>(a + part * (n / 4), n / 4);
    return;
  }
  Index half = n / 2;
  for (; half / 2 >= square; half /= 4) double_butterflies<T>(a, n, half / 2);
  if (half >= square) butterflies<T>(a, n, half);
  for (Index i = 0; i < n; i += square) transform_square<T>(a + i);
}

template <class T> void hadamard(T* data, Index rows, Index length, Index ld) {
  for (Index i = 0; i < rows; i++) transform<T>(data + i * ld, length);
}

} // namespace MERCER_ISA
} // namespace mercer

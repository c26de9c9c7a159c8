// Facts about single rows: norms, and a hash of the content that does not depend on where a row stands.
#pragma once
#include <cmath>

#include "tile.hpp"

namespace mercer {
namespace MERCER_ISA {

template <class T, class F> inline double sum_over_row(const Rows<T>& rows, Index i, F&& f) {
  const bool dense = !rows.indptr;
  const T* x = dense ? rows.data + i * rows.stride : rows.data + rows.indptr[i];
  const Index count = dense ? rows.d : rows.indptr[i + 1] - rows.indptr[i];
  vec<double> total{};
  Index t = 0;
  for (; t + lanes<double> <= count; t += lanes<double>) total += f(widen<T>(x + t));
  double rest = 0;
  for (; t < count; t++) rest += f(splat<double>(double(x[t])))[0];
  return sum_lanes<double>(total) + rest;
}

// power 2: squared l2; 1: l1; -2: inverse l2 (0 for a zero row)
template <class T> void norms(const Rows<T>& rows, int power, T* out) {
  for (Index i = 0; i < rows.n; i++) {
    if (power == 1) {
      out[i] = T(sum_over_row<T>(rows, i, [](vec<double> v) { return absolute<double>(v); }));
      continue;
    }
    const double squared = sum_over_row<T>(rows, i, [](vec<double> v) { return v * v; });
    out[i] = T(power == 2 ? squared : squared > 0 ? 1 / std::sqrt(squared) : 0.0);
  }
}

inline uint64_t scramble(uint64_t x) { // the finaliser of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// The sum over nonzero entries of a scrambled (column, value): the same for dense, CSR, float32 and float64.
template <class T> void hash(const Rows<T>& rows, uint64_t* out) {
  for (Index i = 0; i < rows.n; i++) {
    const bool dense = !rows.indptr;
    const Index begin = dense ? 0 : rows.indptr[i], end = dense ? rows.d : rows.indptr[i + 1];
    const T* x = dense ? rows.data + i * rows.stride : rows.data;
    uint64_t sum = 0;
    for (Index t = begin; t < end; t++) {
      const uint64_t column = uint64_t(dense ? t : rows.indices[t]) + 1;
      const uint64_t word = scramble(bits<uint64_t>(double(x[t])) ^ (column * 0x9e3779b97f4a7c15ull));
      sum += x[t] != T(0) ? word : 0;
    }
    out[i] = scramble(sum);
  }
}

} // namespace MERCER_ISA
} // namespace mercer

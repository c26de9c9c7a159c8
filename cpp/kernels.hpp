// Kernel values from register tiles: K(X, Z), and K(X, Z) V without storing K.
#pragma once
#include "tile.hpp"

namespace mercer {
namespace MERCER_ISA {

// What turns an inner product (or an l1 distance) `v` into a kernel value; x and z are the two norms.
struct LinearMap {
  using accumulate = Dot;
  template <class T> vec<T> operator()(vec<T> v, T, vec<T>) const { return v; }
};
template <class T> struct RbfMap { // norms: squared l2
  using accumulate = Dot;
  T gamma;
  vec<T> operator()(vec<T> v, T x, vec<T> z) const {
    return exp<T>(maximum<T>((z + x) - v * T(2), vec<T>{}) * -gamma);
  }
};
template <class T> struct LaplacianMap { // norms: l1
  using accumulate = AbsoluteDifference;
  T gamma;
  vec<T> operator()(vec<T> v, T, vec<T>) const { // from a sparse row, rounding may leave a little below zero
    return exp<T>(maximum<T>(v, vec<T>{}) * -gamma);
  }
};
template <class T> struct PolynomialMap {
  using accumulate = Dot;
  T gamma, coef0;
  int degree;
  vec<T> operator()(vec<T> v, T, vec<T>) const {
    vec<T> base = v * gamma + coef0, power = splat<T>(T(1));
    for (int e = degree;;) {
      if (e & 1) power = power * base;
      if (!(e >>= 1)) return power;
      base = base * base;
    }
  }
};
template <class T> struct SigmoidMap {
  using accumulate = Dot;
  T gamma, coef0;
  vec<T> operator()(vec<T> v, T, vec<T>) const { return tanh<T>(v * gamma + coef0); }
};
struct CosineMap { // norms: inverse l2
  using accumulate = Dot;
  template <class T> vec<T> operator()(vec<T> v, T x, vec<T> z) const { return v * z * x; }
};

template <class T, class F> inline void with_map(const Kernel& k, F&& f) {
  const T gamma = T(k.gamma), coef0 = T(k.coef0);
  switch (k.kind) {
  case KernelKind::linear: return f(LinearMap{});
  case KernelKind::rbf: return f(RbfMap<T>{gamma});
  case KernelKind::laplacian: return f(LaplacianMap<T>{gamma});
  case KernelKind::polynomial: return f(PolynomialMap<T>{gamma, coef0, k.degree});
  case KernelKind::sigmoid: return f(SigmoidMap<T>{gamma, coef0});
  case KernelKind::cosine: return f(CosineMap{});
  }
}

// The first `count` lanes of V vectors to memory.
template <class T, int V> inline void store_columns(T* out, const vec<T> (&v)[V], Index count) {
  if (count >= V * lanes<T>) {
    for (int q = 0; q < V; q++) store<T>(out + q * lanes<T>, v[q]);
    return;
  }
  T values[V * lanes<T>];
  for (int q = 0; q < V; q++) store<T>(values + q * lanes<T>, v[q]);
  std::memcpy(out, values, sizeof(T) * count);
}

// Apply the map to a register tile and write it. Everything comes by value: through a reference the compiler would have
// to read it again after every store. Always inlined: the accumulators are in registers and must stay there.
template <class T, class Map, int R, int V>
[[gnu::always_inline]] inline void map_tile(Map map, const Tile<T, R, V>& acc, const T* x, const T* norms, T* out, Index ld, Index left) {
  vec<T> z[V];
  for (int v = 0; v < V; v++) z[v] = load<T>(norms + v * lanes<T>);
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    vec<T> value[V];
    for (int v = 0; v < V; v++) value[v] = map(acc.at[r][v], x ? x[r] : T(0), z[v]);
    store_columns<T, V>(out + r * ld, value, left);
  }
}

template <class T, class Map>
inline void kernel_tile(Map map, const Rows<T>& rows, const T* x_norms, const T* packed, Index m, T* out, Index ld) {
  tile<typename Map::accumulate, T>(rows, packed, m, [=](Index i, Index j, const T* panel, const auto& acc) __attribute__((always_inline)) {
    map_tile<T>(map, acc, x_norms ? x_norms + i : nullptr, panel, out + i * ld + j, ld, m - j);
  });
}

template <class T>
void kernel_block(const Kernel& kernel, const Rows<T>& rows, const T* x_norms, const T* packed, Index m, T* out,
                  Index ld) {
  with_map<T>(kernel, [&](auto map) { kernel_tile<T>(map, rows, x_norms, packed, m, out, ld); });
}

// ---- K(X, Z) V ------------------------------------------------------------------------------------------------

constexpr Index product_rows = 8 * max_rows, product_columns = 256; // a kernel tile that stays in the cache

template <class T> Index product_scratch() { return product_rows * product_columns; }

// out (+)= block @ V[first : first + block.d], V packed by columns.
template <class T>
inline void multiply(const Rows<T>& block, const T* packed_v, Index m, Index p, Index first, T* out, Index ld) {
  for_panels<T>(p, m, packed_v, [&](auto V, Index j, const T* panel) {
    constexpr int v = decltype(V)::value;
    const T* features = panel + (1 + first) * v * lanes<T>;
    for_row_groups(block.n, [&](auto R, Index i) {
      constexpr int r = decltype(R)::value;
      Tile<T, r, v> acc{};
      accumulate<Dot>(block, i, features, v * lanes<T>, acc);
      for (int row = 0; row < r; row++) {
        T* to = out + (i + row) * ld + j;
        vec<T> before[v]{};
        if (first) std::memcpy(before, to, sizeof(T) * (p - j < v * lanes<T> ? p - j : v * lanes<T>));
        for (int q = 0; q < v; q++) before[q] += acc.at[row][q];
        store_columns<T, v>(to, before, p - j);
      }
    });
  });
}

template <class T>
void kernel_product(const Kernel& kernel, const Rows<T>& rows, const T* x_norms, const T* packed, Index m,
                    const T* packed_v, Index p, T* out, Index ld, T* scratch) {
  static_assert(product_columns % panel_width<T> == 0, "a chunk of columns starts on a panel");
  with_map<T>(kernel, [&](auto map) {
    for (Index i = 0; i < rows.n; i += product_rows) {
      Rows<T> part = rows;
      part.n = rows.n - i < product_rows ? rows.n - i : product_rows;
      if (rows.indptr) part.indptr += i; else part.data += i * rows.stride;
      for (Index j = 0; j < m; j += product_columns) {
        const Index count = m - j < product_columns ? m - j : product_columns;
        kernel_tile<T>(map, part, x_norms ? x_norms + i : nullptr, packed + j * (rows.d + 1), count, scratch,
                       product_columns);
        Rows<T> block;
        block.n = part.n, block.d = count, block.data = scratch, block.stride = product_columns;
        multiply<T>(block, packed_v, m, p, j, out + i * ld, ld);
      }
    }
  });
}

} // namespace MERCER_ISA
} // namespace mercer

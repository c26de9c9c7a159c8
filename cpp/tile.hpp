// The one inner loop: a register tile of rows x panel columns, accumulated over the features.
//
// The right operand is packed into panels of `panel_width` columns, feature-major, so that one feature of a panel
// is two aligned vectors; the last panel is one vector wide when that suffices. Rows are read in place, dense or
// CSR. What happens to a tile while it is in registers is the epilogue's business.
#pragma once
#include "primitives.hpp"
#include "simd.hpp"

namespace mercer {
namespace MERCER_ISA {

template <class T, int R, int V> struct Tile {
  vec<T> at[R][V];
};

struct Dot {
  template <class T> static vec<T> step(vec<T> acc, vec<T> b, vec<T> a) { return acc + b * a; }
  template <class T> static vec<T> sparse_step(vec<T> acc, vec<T> b, T a) { return acc + b * a; }
  template <class T, int V> static Tile<T, 1, V> sparse_start(const T*) { return {}; }
};

// Sum of |b - a|. A sparse row starts from the columns' own l1 norms (their distance to zero) and corrects them.
struct AbsoluteDifference {
  template <class T> static vec<T> step(vec<T> acc, vec<T> b, vec<T> a) { return acc + absolute<T>(b - a); }
  template <class T> static vec<T> sparse_step(vec<T> acc, vec<T> b, T a) {
    return acc + (absolute<T>(b - a) - absolute<T>(b));
  }
  template <class T, int V> static Tile<T, 1, V> sparse_start(const T* norms) {
    Tile<T, 1, V> acc;
    for (int v = 0; v < V; v++) acc.at[0][v] = load<T>(norms + v * lanes<T>);
    return acc;
  }
};

// Sum of max(a, b): half of |b - a| + a + b, in one operation less than |b - a|. Dense rows only.
struct Larger {
  template <class T> static vec<T> step(vec<T> acc, vec<T> b, vec<T> a) { return acc + maximum<T>(b, a); }
};

// One number in all lanes. If it meets more than one vector it is loaded once, into a register: left alone, the compiler
// reads it from memory again for each, and the loop waits for its loads.
template <int V, class T> inline vec<T> broadcast(T a) {
  vec<T> all = splat<T>(a);
  if constexpr (V > 1) keep_in_register<T>(all);
  return all;
}

// sums += the products (or differences) of R rows with one panel; `panel` points at its first feature. The sums are
// worked on in a copy: through the reference they would be written to memory at every step.
template <class Accumulate, int R, int V, class T>
inline void accumulate(const Rows<T>& rows, Index i, const T* panel, Index panel_stride, Tile<T, R, V>& sums) {
  const T* x = rows.data + i * rows.stride;
  Tile<T, R, V> acc = sums;
  for (Index t = 0; t < rows.d; t++) {
    vec<T> b[V];
    for (int v = 0; v < V; v++) b[v] = load<T>(panel + t * panel_stride + v * lanes<T>);
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) {
      const vec<T> a = broadcast<V>(x[r * rows.stride + t]);
#pragma GCC unroll 2
      for (int v = 0; v < V; v++) acc.at[r][v] = Accumulate::template step<T>(acc.at[r][v], b[v], a);
    }
  }
  sums = acc;
}

// Columns in which some row of a group is not zero: the others add nothing to a product. Real data are often mostly zeros
// (pixels, one-hot columns), and the rows of a group often in the same places.
constexpr Index most_listed = 2048;
struct Listed {
  uint16_t columns[most_listed];
  Index count; // -1: no list, take all columns
};

template <class T> inline void list_columns(const Rows<T>& rows, Index i, Index height, Listed& listed) {
  constexpr int L = lanes<T>;
  const T* x = rows.data + i * rows.stride;
  Index count = 0, t = 0;
  for (; t + L <= rows.d; t += L) {
    ivec<T> any{};
    for (Index r = 0; r < height; r++) any |= load<T>(x + r * rows.stride + t) != T(0);
    for (int q = 0; q < L; q++) {
      listed.columns[count] = uint16_t(t + q);
      count += any[q] != 0;
    }
  }
  for (; t < rows.d; t++) {
    bool any = false;
    for (Index r = 0; r < height; r++) any |= x[r * rows.stride + t] != T(0);
    if (any) listed.columns[count++] = uint16_t(t);
  }
  listed.count = 8 * count <= 7 * rows.d ? count : -1; // a few zeros are not worth the detour
}

// The same sum as `accumulate` of products, over the listed columns.
template <int R, int V, class T>
inline void accumulate_listed(const Rows<T>& rows, Index i, const T* panel, const Listed& listed, Tile<T, R, V>& sums) {
  const T* x = rows.data + i * rows.stride;
  Tile<T, R, V> acc = sums;
  for (Index p = 0; p < listed.count; p++) {
    const Index t = listed.columns[p];
    vec<T> b[V];
    for (int v = 0; v < V; v++) b[v] = load<T>(panel + (t * V + v) * lanes<T>);
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) {
      const vec<T> a = broadcast<V>(x[r * rows.stride + t]);
#pragma GCC unroll 2
      for (int v = 0; v < V; v++) acc.at[r][v] = Dot::step<T>(acc.at[r][v], b[v], a);
    }
  }
  sums = acc;
}

template <class Accumulate, int V, class T>
inline void accumulate_sparse(const Rows<T>& rows, Index i, const T* panel, Tile<T, 1, V>& acc) {
  for (int64_t p = rows.indptr[i]; p < rows.indptr[i + 1]; p++)
    for (int v = 0; v < V; v++)
      acc.at[0][v] = Accumulate::template sparse_step<T>(
          acc.at[0][v], load<T>(panel + (Index(rows.indices[p]) * V + v) * lanes<T>), rows.data[p]);
}

template <int R> using constant = std::integral_constant<int, R>;

// Cut n rows into groups of max_rows, then 8, 4, 2, 1: f(constant<R>, first row).
template <int R, class F> inline Index take_groups(Index i, Index n, F&& f) {
  if constexpr (R <= max_rows)
    for (; n - i >= R; i += R) f(constant<R>{}, i);
  return i;
}
template <class F> inline void for_row_groups(Index n, F&& f) {
  Index i = take_groups<max_rows>(0, n, f);
  i = take_groups<8>(i, n, f);
  i = take_groups<4>(i, n, f);
  i = take_groups<2>(i, n, f);
  take_groups<1>(i, n, f);
}

// Cut n rows into as few groups as possible, all of nearly the same height: f(constant<R>, first row). A short group
// leaves multipliers idle, which counts where rows are few, as centres are.
template <int R, class F> inline void with_height(Index height, F&& f) {
  if (height == R)
    f(constant<R>{});
  else if constexpr (R > 1)
    with_height<R - 1>(height, f);
}
template <class F> inline void for_even_groups(Index n, F&& f) {
  const Index groups = (n + max_rows - 1) / max_rows;
  for (Index i = 0, left = groups; left > 0; left--) {
    const Index height = (n - i + left - 1) / left;
    with_height<max_rows>(height, [&](auto R) { f(R, i); });
    i += height;
  }
}

// ---- packing --------------------------------------------------------------------------------------------------
// A panel is (1 + d) x width: the columns' norms (or zeros), then their features.

template <class T> inline Index panel_columns(Index m, Index j) {
  return m - j <= lanes<T> ? lanes<T> : panel_width<T>;
}

template <class T> inline Index packed_size(Index m, Index d) {
  return (m + lanes<T> - 1) / lanes<T> * lanes<T> * (d + 1);
}

// f(constant<vectors>, first column, panel)
template <class T, class F> inline void for_panels(Index m, Index d, const T* packed, F&& f) {
  for (Index j = 0; j < m; j += panel_width<T>)
    if (panel_columns<T>(m, j) == lanes<T>)
      f(constant<1>{}, j, packed + j * (d + 1));
    else
      f(constant<2>{}, j, packed + j * (d + 1));
}

// rows at(0), .., at(count - 1) -> the features of one panel; missing columns are zero.
template <class T, class At> inline void pack_rows(const Rows<T>& rows, At&& at, Index count, Index width, T* out) {
  constexpr int L = lanes<T>;
  if (rows.indptr) {
    std::memset(out, 0, sizeof(T) * width * rows.d);
    for (Index c = 0; c < count; c++)
      for (int64_t p = rows.indptr[at(c)]; p < rows.indptr[at(c) + 1]; p++)
        out[Index(rows.indices[p]) * width + c] = rows.data[p];
    return;
  }
  for (Index c = 0; c < width; c += L) {
    Index t = 0;
    if (count - c >= L && rows.d >= L) {
      const T* x[L];
      for (int q = 0; q < L; q++) x[q] = rows.data + at(c + q) * rows.stride;
      const auto square_at = [&](Index t) {
        const T* from[L];
#pragma GCC unroll 16
        for (int q = 0; q < L; q++) {
          from[q] = x[q] + t;
          __builtin_prefetch(from[q] + L * rows.stride); // short strided streams: the hardware sees none of them coming
        }
        transpose_rows<T>(from, out + t * width + c, width);
      };
      for (; t + L <= rows.d; t += L) square_at(t);
      if (t < rows.d) square_at(rows.d - L); // some columns again, in less time than the rest one by one
      t = rows.d;
    }
    for (; t < rows.d; t++)
      for (Index q = 0; q < L; q++)
        out[t * width + c + q] = c + q < count ? rows.data[at(c + q) * rows.stride + t] : T(0);
  }
}

// rows [i, i + count) -> the features of one panel
template <class T> inline void pack_features(const Rows<T>& rows, Index i, Index count, Index width, T* out) {
  pack_rows<T>(rows, [i](Index c) { return i + c; }, count, width, out);
}

template <class T> void pack(const Rows<T>& rows, const T* norms, T* out) {
  for (Index j = 0; j < rows.n; j += panel_width<T>) {
    const Index width = panel_columns<T>(rows.n, j), left = rows.n - j, count = left < width ? left : width;
    T* panel = out + j * (rows.d + 1);
    for (Index c = 0; c < width; c++) panel[c] = norms && c < count ? norms[j + c] : T(0);
    pack_features<T>(rows, j, count, width, panel + width);
  }
}

// ---- the driver -----------------------------------------------------------------------------------------------

// All rows x all panels. Rows go in blocks that stay in the second-level cache while a panel passes over them.
// finish(row, column, panel, tile) is called with each register tile; panel[0 .. width) are the columns' norms.
template <class Accumulate, class T, class Finish>
inline void tile(const Rows<T>& rows, const T* packed, Index m, Finish&& finish) {
  constexpr Index block = 8 * max_rows, groups = 8 + 4; // the last rows make at most four smaller groups
  constexpr bool may_list = std::is_same<Accumulate, Dot>::value;
  const bool lists = may_list && !rows.indptr && rows.d >= 16 && rows.d <= most_listed && m >= 4 * panel_width<T>;
  Listed listed[may_list ? groups : 1];
  for (Index first = 0; first < rows.n; first += block) {
    const Index count = rows.n - first < block ? rows.n - first : block;
    if (lists) {
      Index group = 0;
      for_row_groups(count, [&](auto R, Index offset) {
        list_columns<T>(rows, first + offset, decltype(R)::value, listed[group++]);
      });
    }
    for_panels<T>(m, rows.d, packed, [&](auto V, Index j, const T* panel) {
      constexpr int v = decltype(V)::value;
      const T* features = panel + v * lanes<T>;
      if (rows.indptr) {
        for (Index i = first; i < first + count; i++) {
          auto acc = Accumulate::template sparse_start<T, v>(panel);
          accumulate_sparse<Accumulate, v, T>(rows, i, features, acc);
          finish(i, j, panel, acc);
        }
        return;
      }
      Index group = 0;
      for_row_groups(count, [&](auto R, Index offset) {
        Tile<T, decltype(R)::value, v> acc{};
        const Listed& columns = listed[may_list ? group++ : 0];
        if (may_list && lists && columns.count >= 0)
          accumulate_listed(rows, first + offset, features, columns, acc);
        else
          accumulate<Accumulate>(rows, first + offset, features, v * lanes<T>, acc);
        finish(first + offset, j, panel, acc);
      });
    });
  }
}

} // namespace MERCER_ISA
} // namespace mercer

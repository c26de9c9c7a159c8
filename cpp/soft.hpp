// Points against explicit centres: fuzzy, possibilistic or hard memberships, with the weighted sums of the centres in the
// same pass. Points lie along the lanes of a vector, as in centers.hpp.
#pragma once
#include "centers.hpp"

namespace mercer {
namespace MERCER_ISA {

constexpr Index most_soft_panels = 16;

template <class T> inline Index padded(Index d) { return (d + panel_width<T> - 1) / panel_width<T> * panel_width<T>; }

// Numbers of scratch for each point: distances and memberships, the same of the step before, the packed point, and the
// point again as a padded row.
template <class T> inline Index soft_numbers(Index k, Index d) { return 4 * k + (d ? d : 1) + padded<T>(d); }

// Points of a block: many, so that the rows of the next are fetched in time, but no more than fit in half a megabyte.
template <class T> inline Index soft_points(Index k, Index d) {
  const Index fit = (Index(1) << 19) / (Index(sizeof(T)) * panel_width<T> * soft_numbers<T>(k, d));
  return panel_width<T> * (fit < 1 ? 1 : fit > most_soft_panels ? most_soft_panels : fit);
}
template <class T> Index soft_scratch(Index k, Index d) { return soft_points<T>(k, d) * soft_numbers<T>(k, d); }

constexpr Index some_points = 32; // between fetches of what comes next

template <class T> inline vec<T> power(vec<T> v, T exponent) { // v >= 0; 0 and what is below it in the log domain: 0
  if (exponent == T(1)) return v;
  if (exponent == T(2)) return v * v;
  const T least = std::numeric_limits<T>::min();
  return select<T>(v < least, vec<T>{}, exp<T>(log<T>(maximum<T>(v, splat<T>(least))) * exponent));
}

// u^m. Beyond the square in the log domain, and for fuzzy memberships as (k u)^m k^-m: with a large m all are near 1 / k,
// and u^m alone would be lost below the smallest number.
template <class T> struct Raise {
  T m, shift, most;
  double scale; // to be multiplied with what is summed
  Raise(double m, Index k, bool fuzzy) : m(T(m)), shift(0), most(std::is_same<T, float>::value ? 80 : 650), scale(1) {
    if (!fuzzy || m <= 2) return;
    shift = T(std::log(double(k)));
    scale = std::exp(-m * std::log(double(k)));
  }
  vec<T> operator()(vec<T> u) const {
    if (shift == 0) return power<T>(u, m);
    const T least = std::numeric_limits<T>::min();
    const vec<T> e = (log<T>(maximum<T>(u, splat<T>(least))) + shift) * m;
    return select<T>(u < least, vec<T>{}, exp<T>(minimum<T>(e, splat<T>(most))));
  }
};

// Membership of one vector of points in every cluster from squared distances D (k rows, `ld` apart).
// Fuzzy: ratios to the nearest centre, so that nothing overflows. At a distance of zero the exact limit is taken: a
// point belongs to the centres it lies on, and to a possibilistic cluster of no width only at its centre.
template <class T> inline void memberships(const SoftTask<T>& task, const T* D, T* U, Index ld) {
  const T exponent = T(1 / (task.m - 1));
  const vec<T> least = splat<T>(std::numeric_limits<T>::min() * T(1024));
  if (task.nu) {
    for (Index c = 0; c < task.k; c++) {
      const T nu = task.nu[c];
      const vec<T> d2 = load<T>(D + c * ld);
      const vec<T> u = nu > 0 ? T(1) / (T(1) + power<T>(d2 / nu, exponent)) : vec<T>{};
      store<T>(U + c * ld, select<T>(d2 > T(0), u, splat<T>(T(1))));
    }
    return;
  }
  vec<T> nearest = splat<T>(std::numeric_limits<T>::max()), total{};
  for (Index c = 0; c < task.k; c++) nearest = minimum<T>(nearest, load<T>(D + c * ld));
  if (task.m == 1) { // the first of the nearest
    for (Index c = 0; c < task.k; c++) {
      const vec<T> u = select<T>(load<T>(D + c * ld) <= nearest, splat<T>(T(1)) - total, vec<T>{});
      store<T>(U + c * ld, u);
      total += u;
    }
    return;
  }
  const ivec<T> at_center = nearest <= least;
  for (Index c = 0; c < task.k; c++) {
    const vec<T> d2 = maximum<T>(load<T>(D + c * ld), least), away = power<T>(nearest / d2, exponent);
    const vec<T> u = select<T>(at_center, select<T>(d2 > least, vec<T>{}, splat<T>(T(1))), away);
    store<T>(U + c * ld, u);
    total += u;
  }
  const vec<T> share = T(1) / total;
  for (Index c = 0; c < task.k; c++) store<T>(U + c * ld, load<T>(U + c * ld) * share);
}

// Squared distances of a block of points to all centres: D[c][point].
template <class T>
inline void distances(const SoftTask<T>& task, const T* of, const T* half, Index first, Index count, const T* packed,
                      T* D, Ahead<T>& ahead) {
  const Index width = panel_width<T>, ld = soft_points<T>(task.k, task.points.d);
  const Rows<T> centers = center_rows<T>(of, task.k, task.points.d);
  for (Index j = 0; j < count; j += width) {
    T norms[panel_width<T>] = {};
    std::memcpy(norms, task.norms + first + j, sizeof(T) * (count - j < width ? count - j : width));
    for_even_groups(task.k, [&](auto R, Index c) {
      constexpr int r = decltype(R)::value;
      Tile<T, r, 2> acc{};
      for (Index t = 0; t < task.points.d; t += stretch) {
        accumulate<Dot>(columns_from(centers, t, stretch), c, packed + j * task.points.d + t * width, width, acc);
        ahead.fetch();
      }
      for (int row = 0; row < r; row++)
        for (int v = 0; v < 2; v++) {
          const vec<T> d2 = load<T>(norms + v * lanes<T>) - (acc.at[row][v] - half[c + row]) * T(2);
          store<T>(D + (c + row) * ld + j + v * lanes<T>, maximum<T>(d2, vec<T>{}));
        }
    });
  }
}

// Nearest by membership, the lower of equals, and how far away that centre is.
template <class T> inline void label(const SoftTask<T>& task, Index first, Index count, const T* D, const T* U) {
  const Index ld = soft_points<T>(task.k, task.points.d);
  for (Index q = 0; q < count; q += lanes<T>) {
    vec<T> most = load<T>(U + q), own = load<T>(D + q);
    ivec<T> best{};
    for (Index c = 1; c < task.k; c++) {
      const vec<T> u = load<T>(U + c * ld + q);
      const ivec<T> better = u > most;
      most = select<T>(better, u, most);
      own = select<T>(better, load<T>(D + c * ld + q), own);
      best = better ? ivec<T>{} + decltype(ivec<T>{}[0])(c) : best;
    }
    typedef int32_t label_vector __attribute__((vector_size(4 * lanes<T>)));
    const label_vector labels = __builtin_convertvector(best, label_vector);
    const Index left = count - q < lanes<T> ? count - q : lanes<T>;
    std::memcpy(task.labels + first + q, &labels, sizeof(int32_t) * left);
    if (task.own) std::memcpy(task.own + first + q, &own, sizeof(T) * left);
  }
}

// Keep the memberships, and the largest change of one.
template <class T> inline void keep(const SoftTask<T>& task, Index first, Index count, const T* U, SoftResult& result) {
  const Index ld = soft_points<T>(task.k, task.points.d);
  vec<T> change{};
  double rest = result.change;
  for (Index c = 0; c < task.k; c++) {
    const T* now = U + c * ld;
    T* kept = task.memberships + c * task.ld + first;
    Index q = 0;
    for (; q + lanes<T> <= count; q += lanes<T>) {
      const vec<T> u = load<T>(now + q);
      change = maximum<T>(change, absolute<T>(u - load<T>(kept + q)));
      store<T>(kept + q, u);
      __builtin_prefetch(kept + q + ld, 1, 2); // of the next block: many short streams
    }
    for (; q < count; q++) {
      const double moved = std::abs(double(now[q] - kept[q]));
      rest = moved > rest ? moved : rest;
      kept[q] = now[q];
    }
  }
  for (int q = 0; q < lanes<T>; q++) rest = double(change[q]) > rest ? double(change[q]) : rest;
  result.change = rest;
}

// The largest difference between memberships U and those of the step before, which are computed again.
template <class T>
inline void compare(const SoftTask<T>& task, Index first, Index count, const T* packed, const T* U, T* old_D, T* old_U,
                    SoftResult& result) {
  const Index ld = soft_points<T>(task.k, task.points.d);
  SoftTask<T> before = task;
  before.nu = task.old_nu;
  Ahead<T> nothing(task.points, task.points.n, 0, 0);
  distances<T>(task, task.old_centers, task.old_half, first, count, packed, old_D, nothing);
  for (Index q = 0; q < count; q += lanes<T>) memberships<T>(before, old_D + q, old_U + q, ld);
  double change = result.change;
  for (Index c = 0; c < task.k; c++)
    for (Index q = 0; q < count; q++) {
      const double moved = std::abs(double(U[c * ld + q] - old_U[c * ld + q]));
      change = moved > change ? moved : change;
    }
  result.change = change;
}

// From memberships U to weights w u^m in place; the objective on the way.
template <class T>
inline void weigh(const SoftTask<T>& task, const Raise<T>& raise, Index first, Index count, const T* D, T* U,
                  SoftResult& result) {
  const Index ld = soft_points<T>(task.k, task.points.d);
  T weights[most_soft_panels * panel_width<T>] = {};
  for (Index q = 0; q < count; q++) weights[q] = task.weights ? task.weights[first + q] : T(1);
  for (Index c = 0; c < task.k; c++) {
    vec<double> total{}, cost{}, spare{};
    vec<T> peak{};
    for (Index q = 0; q < ld; q += lanes<T>) {
      const vec<T> u = load<T>(U + c * ld + q), w = load<T>(weights + q), weighted = raise(u) * w;
      store<T>(U + c * ld + q, weighted);
      peak = maximum<T>(peak, select<T>(w > T(0), u, vec<T>{}));
      if (task.nu) {
        T lost[lanes<T>];
        store<T>(lost, power<T>(T(1) - u, T(task.m)) * w);
        for (int h = 0; h < lanes<T>; h += lanes<double>) spare += widen<T>(lost + h);
      }
    }
    for (Index q = 0; q < ld; q += lanes<double>) {
      const vec<double> w = widen<T>(U + c * ld + q);
      total += w;
      cost += w * widen<T>(D + c * ld + q);
    }
    task.totals[c] += sum_lanes<double>(total) * raise.scale;
    const double costs = sum_lanes<double>(cost) * raise.scale;
    if (task.costs) task.costs[c] += costs;
    if (task.peaks)
      for (int q = 0; q < lanes<T>; q++) task.peaks[c] = peak[q] > task.peaks[c] ? T(peak[q]) : task.peaks[c];
    result.objective += costs + (task.nu ? double(task.nu[c]) * sum_lanes<double>(spare) : 0.0);
  }
}

// sums[c] += sum over the block's points of W[c][point] * row; rows are `ld` apart and may be read beyond their ends.
template <class T>
inline void add_weighted_rows(const SoftTask<T>& task, double scale, Index count, const T* W, const T* rows, Index ld,
                              Ahead<T>& ahead) {
  const Index d = task.points.d;
  Rows<T> weights = center_rows<T>(W, task.k, soft_points<T>(task.k, d));
  weights.d = count;
  for (Index j = 0; j < d; j += panel_width<T>)
    for_even_groups(task.k, [&](auto R, Index c) {
      constexpr int r = decltype(R)::value;
      Tile<T, r, 2> acc{};
      for (Index q = 0; q < count; q += some_points) {
        accumulate<Dot>(columns_from(weights, q, some_points), c, rows + q * ld + j, ld, acc);
        ahead.fetch();
      }
      for (int row = 0; row < r; row++) {
        T sum[panel_width<T>];
        for (int v = 0; v < 2; v++) store<T>(sum + v * lanes<T>, acc.at[row][v]);
        double* to = task.sums + (c + row) * d + j;
        for (Index t = 0; t < panel_width<T> && j + t < d; t++) to[t] += double(sum[t]) * scale;
      }
    });
}

template <class T> inline void copy_rows(const Rows<T>& rows, Index i, Index count, T* out) {
  const Index ld = padded<T>(rows.d);
  std::memset(out, 0, sizeof(T) * count * ld);
  for (Index q = 0; q < count; q++) {
    if (!rows.indptr) {
      std::memcpy(out + q * ld, rows.data + (i + q) * rows.stride, sizeof(T) * rows.d);
      continue;
    }
    for (int64_t p = rows.indptr[i + q]; p < rows.indptr[i + q + 1]; p++)
      out[q * ld + rows.indices[p]] = rows.data[p];
  }
}

template <class T> SoftResult soft_step(const SoftTask<T>& task) {
  const Index d = task.points.d, n = task.points.n, width = panel_width<T>, block = soft_points<T>(task.k, d);
  T *D = task.scratch, *U = D + block * task.k, *old_D = U + block * task.k, *old_U = old_D + block * task.k;
  T *packed = old_U + block * task.k, *rows = packed + block * (d ? d : 1);
  const Raise<T> raise(task.m, task.k, !task.nu);
  SoftResult result{0.0, 0.0};
  for (Index first = 0; first < n; first += block) {
    const Index count = n - first < block ? n - first : block;
    if (count < block) std::memset(D, 0, sizeof(T) * 2 * block * task.k);
    for (Index j = 0; j < count; j += width)
      pack_features<T>(task.points, first + j, count - j < width ? count - j : width, width, packed + j * d);
    const Index tiles = ((task.k + max_rows - 1) / max_rows) * ((count + width - 1) / width);
    const Index more = (d + width - 1) / width * ((task.k + max_rows - 1) / max_rows) * (block / some_points);
    Ahead<T> ahead(task.points, first + block, block, tiles * ((d + stretch - 1) / stretch) + block / lanes<T> + more);
    distances<T>(task, task.centers, task.half, first, count, packed, D, ahead);
    for (Index q = 0; q < count; q += lanes<T>) {
      memberships<T>(task, D + q, U + q, block);
      ahead.fetch();
    }
    if (task.labels) label<T>(task, first, count, D, U);
    if (task.memberships) keep<T>(task, first, count, U, result);
    else if (task.old_centers) compare<T>(task, first, count, packed, U, old_D, old_U, result);
    weigh<T>(task, raise, first, count, D, U, result);
    const Index behind = (n - first - count) * task.points.stride;
    if (!task.points.indptr && behind >= panel_width<T>) { // the rows are where they are, with more behind them
      const Index ld = task.points.stride;
      add_weighted_rows<T>(task, raise.scale, count, U, task.points.data + first * ld, ld, ahead);
    } else {
      copy_rows<T>(task.points, first, count, rows);
      add_weighted_rows<T>(task, raise.scale, count, U, rows, padded<T>(d), ahead);
    }
  }
  return result;
}

} // namespace MERCER_ISA
} // namespace mercer

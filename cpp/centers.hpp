// Points against explicit centres: nearest centre (l2, l1) and soft memberships, with the centres' sums in the
// same pass.
//
// Points are packed and lie along the lanes of a vector, centres are the rows of the register tile: the minimum over
// centres is then taken lane by lane, no padding is wasted on the number of centres, and there is nothing to reduce.
#pragma once
#include <cmath>
#include <limits>

#include "tile.hpp"

namespace mercer {
namespace MERCER_ISA {

template <class T> inline Rows<T> center_rows(const T* centers, Index k, Index d) {
  Rows<T> rows;
  rows.n = k, rows.d = d, rows.data = centers, rows.stride = d;
  return rows;
}

// Columns [t, t + count) of dense rows, or to the last.
template <class T> inline Rows<T> columns_from(const Rows<T>& rows, Index t, Index count) {
  Rows<T> part = rows;
  part.data += t, part.d = rows.d - t < count ? rows.d - t : count;
  return part;
}

// ---- nearest centre -------------------------------------------------------------------------------------------

constexpr int most_panels = 8;

// What points add to the sums of their clusters, kept until a block is done: the rows of one cluster are then added
// together, and its sum is read and written once.
template <class T> class Contributions {
public:
  void add(Index row, Index cluster, double weight) { entries[count++] = {row, cluster, weight}; }

  void flush(const Rows<T>& rows, double* sums) {
    Index order[most], start[buckets + 1] = {};
    for (Index e = 0; e < count; e++) start[entries[e].cluster % buckets + 1]++;
    for (Index b = 0; b < buckets; b++) start[b + 1] += start[b];
    for (Index e = 0; e < count; e++) order[start[entries[e].cluster % buckets]++] = e;
    for (Index e = 0, end; e < count; e = end) {
      const Index cluster = entries[order[e]].cluster;
      for (end = e + 1; end < count && entries[order[end]].cluster == cluster;) end++;
      add_rows(rows, order + e, end - e, sums + cluster * rows.d);
    }
    count = 0;
  }

  static constexpr Index most = 2 * most_panels * panel_width<T>; // a point may leave one cluster for another

private:
  static constexpr Index buckets = 256;
  struct Entry {
    Index row, cluster;
    double weight;
  };

  void add_rows(const Rows<T>& rows, const Index* which, Index number, double* sum) const {
    constexpr Index L = lanes<double>;
    Index t = 0;
    if (rows.indptr) {
      for (Index e = 0; e < number; e++) add_sparse(rows, entries[which[e]], sum);
      return;
    }
    for (; t + 8 * L <= rows.d; t += 8 * L) add_columns<8>(rows, which, number, t, sum + t);
    for (; t + L <= rows.d; t += L) add_columns<1>(rows, which, number, t, sum + t);
    for (; t < rows.d; t++)
      for (Index e = 0; e < number; e++) {
        const Entry& entry = entries[which[e]];
        sum[t] += entry.weight * double(rows.data[entry.row * rows.stride + t]);
      }
  }

  template <int V>
  void add_columns(const Rows<T>& rows, const Index* which, Index number, Index t, double* sum) const {
    vec<double> total[V];
    for (int v = 0; v < V; v++) total[v] = load<double>(sum + v * lanes<double>);
    for (Index e = 0; e < number; e++) {
      const Entry& entry = entries[which[e]];
      const T* x = rows.data + entry.row * rows.stride + t;
#pragma GCC unroll 8
      for (int v = 0; v < V; v++) total[v] += widen<T>(x + v * lanes<double>) * entry.weight;
    }
    for (int v = 0; v < V; v++) store<double>(sum + v * lanes<double>, total[v]);
  }

  static void add_sparse(const Rows<T>& rows, const Entry& entry, double* sum) {
    for (int64_t p = rows.indptr[entry.row]; p < rows.indptr[entry.row + 1]; p++)
      sum[rows.indices[p]] += entry.weight * double(rows.data[p]);
  }

  Entry entries[most];
  Index count = 0;
};

// Panels of points that share one pass over the centres: as many as fit in half a megabyte.
template <class T> inline Index assign_panels(Index d) {
  const Index fit = (Index(1) << 19) / (Index(sizeof(T)) * panel_width<T> * (d + 1));
  return fit < 1 ? 1 : fit > most_panels ? most_panels : fit;
}
template <class T> Index assign_scratch(Index d) { return assign_panels<T>(d) * panel_width<T> * (d ? d : 1); }

template <class T> struct Best { // per point of a panel: the best score, the centre that has it, and the second best
  vec<T> score[2], second[2];
  ivec<T> label[2];
};

// Rows of the next block on their way from memory while this block is worked on, a few at a time: as many as the
// machine can have on the way at once.
constexpr Index stretch = 64; // features between fetches
template <class T> struct Ahead {
  const T *at = nullptr, *end = nullptr;
  Index step = 0;
  Ahead(const Rows<T>& points, Index next, Index block, Index fetches) {
    if (points.indptr || next >= points.n) return;
    const Index rows = points.n - next < block ? points.n - next : block;
    at = points.data + next * points.stride, end = at + rows * points.stride;
    step = ((end - at) / (fetches ? fetches : 1) / line + 1) * line;
  }
  void fetch() {
    const T* stop = end - at < step ? end : at + step;
    for (; at < stop; at += line) __builtin_prefetch(at, 0, 2);
  }

private:
  static constexpr Index line = 64 / sizeof(T);
};

// Scores are "larger is nearer": x.c - |c|^2 / 2 for l2; for l1 half of sum(x) - |x - c|_1, which is sum(c) / 2 less
// the sum of max(x, c). The centre's term is -offset.
template <class Accumulate, bool bounded, class T>
inline void nearest(const AssignTask<T>& task, const Rows<T>& centers, Index points, Best<T>* best, Ahead<T>& ahead) {
  constexpr bool l2 = std::is_same<Accumulate, Dot>::value;
  for_even_groups(task.k, [&](auto R, Index c) {
    constexpr int r = decltype(R)::value;
    for (Index j = 0, b = 0; j < points; j += panel_width<T>, b++) {
      Tile<T, r, 2> acc{};
      for (Index t = 0; t < task.points.d; t += stretch) {
        const T* panel = task.scratch + j * task.points.d + t * panel_width<T>;
        accumulate<Accumulate>(columns_from(centers, t, stretch), c, panel, panel_width<T>, acc);
        ahead.fetch();
      }
      Best<T> found = best[b]; // a copy that stays in registers
#pragma GCC unroll 16
      for (int row = 0; row < r; row++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) {
          const vec<T> score = (l2 ? acc.at[row][v] : -acc.at[row][v]) - task.offset[c + row];
          const ivec<T> better = score > found.score[v];
          if (bounded) found.second[v] = maximum<T>(found.second[v], minimum<T>(score, found.score[v]));
          found.score[v] = select<T>(better, score, found.score[v]);
          found.label[v] = better ? ivec<T>{} + decltype(ivec<T>{}[0])(c + row) : found.label[v];
        }
      best[b] = found;
    }
  });
}

template <class T> inline T l1_distance(const Rows<T>& rows, Index i, const T* center) {
  T sum = 0;
  if (rows.indptr) {
    for (Index t = 0; t < rows.d; t++) sum += std::abs(center[t]);
    for (int64_t p = rows.indptr[i]; p < rows.indptr[i + 1]; p++)
      sum += std::abs(rows.data[p] - center[rows.indices[p]]) - std::abs(center[rows.indices[p]]);
    return sum < 0 ? T(0) : sum;
  }
  const T* x = rows.data + i * rows.stride;
  vec<T> total[2] = {};
  Index t = 0;
  for (; t + 2 * lanes<T> <= rows.d; t += 2 * lanes<T>)
    for (int v = 0; v < 2; v++)
      total[v] += absolute<T>(load<T>(x + t + v * lanes<T>) - load<T>(center + t + v * lanes<T>));
  for (; t < rows.d; t++) sum += std::abs(x[t] - center[t]);
  return sum + T(sum_lanes<T>(total[0] + total[1]));
}

// How much nearer a point is to its centre than to any other, at least, by scores that are off by rounding.
template <class T> inline T gap_between(const AssignTask<T>& task, Index i, T score, T second) {
  if (second == -std::numeric_limits<T>::infinity()) return std::numeric_limits<T>::max();
  const T ahead = 2 * (score - second) - 2 * task.slack;
  if (task.metric == Metric::l1) return ahead;
  const T own = task.norms[i] - 2 * score, other = task.norms[i] - 2 * second;
  const T both = std::sqrt((own > 0 ? own : 0) + task.slack) + std::sqrt((other > 0 ? other : 0) + task.slack);
  return both > 0 ? ahead / both : T(0);
}

template <class T>
inline void record(const AssignTask<T>& task, const Index* visited, Index count, const Best<T>& best,
                   Contributions<T>& contributions, AssignResult& result) {
  constexpr int L = lanes<T>;
  T score[2 * L], second[2 * L];
  decltype(ivec<T>{}[0] + 0) label[2 * L];
  std::memcpy(score, best.score, sizeof score);
  std::memcpy(second, best.second, sizeof second);
  std::memcpy(label, best.label, sizeof best.label);
  for (Index q = 0; q < count; q++) {
    const Index i = visited[q], d = task.points.d;
    const int32_t before = task.labels[i], now = int32_t(label[q]);
    const double weight = task.weights ? double(task.weights[i]) : 1.0;
    T distance;
    if (task.metric == Metric::l2) {
      distance = task.norms[i] - 2 * score[q];
      if (!(distance > 0)) distance = 0;
    } else {
      distance = l1_distance<T>(task.points, i, task.centers + now * d);
    }
    result.objective += weight * double(distance);
    result.moved += before != now;
    task.labels[i] = now;
    if (task.distances) task.distances[i] = distance;
    if (task.gaps) task.gaps[i] = gap_between<T>(task, i, score[q], second[q]);
    if (!task.sums || weight == 0 || (task.shifts && before == now)) continue;
    contributions.add(i, now, weight);
    task.totals[now] += weight;
    if (task.shifts) {
      contributions.add(i, before, -weight);
      task.totals[before] -= weight;
    }
  }
}

// Which points may have another nearest centre since the centres moved: all, unless their gaps are known.
template <class T> class Stale {
public:
  explicit Stale(const AssignTask<T>& task) : task(task) {
    // a gap below it might be closed by rounding: (d2 - d1)(d2 + d1) >= gap^2
    least = task.metric == Metric::l1 ? 2 * task.slack : std::sqrt(2 * task.slack);
    for (Index c = 0; task.shifts && c < task.k; c++) {
      if (c && !(task.shifts[c] > task.shifts[farthest])) {
        if (task.shifts[c] > rest) rest = task.shifts[c];
        continue;
      }
      if (c) rest = task.shifts[farthest];
      farthest = c;
    }
  }

  // The first `count` or fewer stale points from i on; i is left behind the last one looked at.
  Index take(Index& i, Index count, Index* out) const {
    Index taken = 0;
    for (; i < task.points.n && taken < count; i++) {
      out[taken] = i;
      taken += !task.shifts || closes(i);
    }
    return taken;
  }

private:
  bool closes(Index i) const {
    const Index label = task.labels[i];
    task.gaps[i] -= task.shifts[label] + (label == farthest ? rest : task.shifts[farthest]);
    return !(task.gaps[i] > least);
  }

  const AssignTask<T>& task;
  Index farthest = 0;
  T rest = 0, least;
};

template <class T> AssignResult assign(const AssignTask<T>& task) {
  const Index d = task.points.d, width = panel_width<T>, block = assign_panels<T>(d) * width;
  const Rows<T> centers = center_rows<T>(task.centers, task.k, d);
  const Stale<T> stale(task);
  AssignResult result{0.0, 0};
  Contributions<T> contributions;
  Index visited[most_panels * panel_width<T> + 1];
  for (Index next = 0, count; (count = stale.take(next, block, visited)) > 0;) {
    Best<T> best[most_panels];
    for (Index j = 0, b = 0; j < count; j += width, b++) {
      const Index* rows = visited + j;
      pack_rows<T>(task.points, [rows](Index c) { return rows[c]; }, count - j < width ? count - j : width, width,
                   task.scratch + j * d);
      for (int v = 0; v < 2; v++)
        best[b].score[v] = best[b].second[v] = splat<T>(-std::numeric_limits<T>::infinity()),
        best[b].label[v] = ivec<T>{};
    }
    const Index tiles = ((task.k + max_rows - 1) / max_rows) * ((count + width - 1) / width);
    // points passed over by their bounds leave no telling which come next
    Ahead<T> ahead(task.points, task.shifts ? task.points.n : next, block, tiles * ((d + stretch - 1) / stretch));
    if (task.metric == Metric::l1)
      task.gaps ? nearest<Larger, true, T>(task, centers, count, best, ahead)
                : nearest<Larger, false, T>(task, centers, count, best, ahead);
    else
      task.gaps ? nearest<Dot, true, T>(task, centers, count, best, ahead)
                : nearest<Dot, false, T>(task, centers, count, best, ahead);
    for (Index j = 0, b = 0; j < count; j += width, b++)
      record<T>(task, visited + j, count - j < width ? count - j : width, best[b], contributions, result);
    if (task.sums) contributions.flush(task.points, task.sums);
  }
  return result;
}

// ---- soft memberships -----------------------------------------------------------------------------------------

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

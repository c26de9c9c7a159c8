// Points against explicit centres: the nearest in l2 or l1, with the centres' sums in the same pass.
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

} // namespace MERCER_ISA
} // namespace mercer

// Work on tiles of a symmetric kernel matrix: per-cluster sums of rows and columns, and nearest implicit centre.
#pragma once
#include "tile.hpp"
#include <limits>

namespace mercer {
namespace MERCER_ISA {

// out[0 .. n) += weight * in[0 .. n), in double
template <class T> inline void add_scaled(const T* in, Index n, double weight, double* out) {
  Index j = 0;
  for (; j + lanes<double> <= n; j += lanes<double>)
    store<double>(out + j, load<double>(out + j) + widen<T>(in + j) * weight);
  for (; j < n; j++) out[j] += weight * double(in[j]);
}

template <class T> inline void apply(const T* values, Index n, const Moves& moves, Index e, double* F, Index ldF) {
  if (moves.to[e] >= 0) add_scaled<T>(values, n, moves.weight[e], F + moves.to[e] * ldF);
  if (moves.from[e] >= 0) add_scaled<T>(values, n, -moves.weight[e], F + moves.from[e] * ldF);
}

// out += weight_0 * row_0, then weight_1 * row_1 and so on: G rows for one visit to out
template <class T, int G>
inline void add_rows(const T* tile, Index ld, const int32_t* position, const double* weight, Index n, double* out) {
  Index j = 0;
  for (; j + lanes<double> <= n; j += lanes<double>) {
    vec<double> sum = load<double>(out + j);
#pragma GCC unroll 8
    for (int g = 0; g < G; g++) sum += widen<T>(tile + position[g] * ld + j) * weight[g];
    store<double>(out + j, sum);
  }
  for (; j < n; j++) {
    double sum = out[j];
    for (int g = 0; g < G; g++) sum += weight[g] * double(tile[position[g] * ld + j]);
    out[j] = sum;
  }
}

// How many moves from e on, at most 8, come from nowhere and go to one cluster
inline int run_length(const Moves& moves, Index e) {
  int length = 0;
  while (length < 8 && e + length < moves.count && moves.from[e + length] < 0 && moves.to[e + length] == moves.to[e])
    length++;
  return moves.to[e] < 0 ? 0 : length;
}

constexpr Index segment_chunk = 256; // of one row of F: 2 KiB

// F[cluster, j] += sum over the moved rows i of weight_i * tile[i, j]. Moves sorted by cluster keep one row of F in the
// cache, and those of first passes then visit it once for several rows.
template <class T>
void segment_rows(const T* tile, Index ld, Index columns, const Moves& moves, double* F, Index ldF) {
  for (Index j = 0; j < columns; j += segment_chunk) {
    const Index count = columns - j < segment_chunk ? columns - j : segment_chunk;
    for (Index e = 0; e < moves.count;) {
      const int32_t* position = moves.position + e;
      const double* weight = moves.weight + e;
      const int run = run_length(moves, e);
      double* out = F + moves.to[e] * ldF + j; // used for runs only
      if (run == 8) add_rows<T, 8>(tile + j, ld, position, weight, count, out), e += 8;
      else if (run >= 4) add_rows<T, 4>(tile + j, ld, position, weight, count, out), e += 4;
      else if (run >= 2) add_rows<T, 2>(tile + j, ld, position, weight, count, out), e += 2;
      else apply<T>(tile + *position * ld + j, count, moves, e, F + j, ldF), e++;
    }
  }
}

// out[j * segment_chunk + i] = tile[i, j] for `rows` rows, at most segment_chunk
template <class T> inline void transpose_strip(const T* tile, Index ld, Index rows, Index columns, T* out) {
  constexpr int L = lanes<T>;
  Index i = 0;
  for (; i + L <= rows; i += L) {
    Index j = 0;
    for (; j + L <= columns; j += L) {
      const T* from[L];
      for (int q = 0; q < L; q++) from[q] = tile + (i + q) * ld + j;
      transpose_rows<T>(from, out + j * segment_chunk + i, segment_chunk);
    }
    for (; j < columns; j++)
      for (int q = 0; q < L; q++) out[j * segment_chunk + i + q] = tile[(i + q) * ld + j];
  }
  for (; i < rows; i++)
    for (Index j = 0; j < columns; j++) out[j * segment_chunk + i] = tile[i * ld + j];
}

template <class T> Index segment_scratch(Index columns) { return segment_chunk * columns; }

// As segment_columns below for moves in any order: worth the transposition when most columns move.
template <class T>
void segment_transposed(const T* tile, Index ld, Index rows, Index columns, const Moves& moves, double* F, Index ldF,
                        T* scratch) {
  for (Index i = 0; i < rows; i += segment_chunk) {
    const Index height = rows - i < segment_chunk ? rows - i : segment_chunk;
    transpose_strip<T>(tile + i * ld, ld, height, columns, scratch);
    segment_rows<T>(scratch, segment_chunk, height, moves, F + i, ldF);
  }
}

// sum[0 .. lanes) += weight * v
template <class T> inline void add_vector(vec<T> v, double weight, double* sum) {
  T values[lanes<T>];
  store<T>(values, v);
#pragma GCC unroll 2
  for (int h = 0; h < lanes<T>; h += lanes<double>)
    store<double>(sum + h, load<double>(sum + h) + widen<T>(values + h) * weight);
}

// A square of the tile with one moved column per vector: loaded and transposed when the columns are neighbours.
template <class T> inline void gather_square(const T* tile, Index ld, const int32_t* position, vec<T> (&square)[lanes<T>]) {
  constexpr int L = lanes<T>;
  if (position[L - 1] - position[0] == L - 1) {
#pragma GCC unroll 16
    for (int q = 0; q < L; q++) square[q] = load<T>(tile + q * ld + position[0]);
    transpose<T>(square);
    return;
  }
  for (int e = 0; e < L; e++) {
    T column[L];
    for (int q = 0; q < L; q++) column[q] = tile[q * ld + position[e]];
    square[e] = load<T>(column);
  }
}

// F[cluster, i] += sum over the moved columns j of weight_j * tile[i, j]; moves in ascending position.
template <class T>
void segment_columns(const T* tile, Index ld, Index rows, const Moves& moves, double* F, Index ldF) {
  constexpr int L = lanes<T>;
  for (Index i = 0; i < rows; i += L) {
    const Index height = rows - i < L ? rows - i : L;
    const T* strip = tile + i * ld;
    Index e = 0;
    for (; height == L && e + L <= moves.count; e += L) {
      vec<T> square[L];
      gather_square<T>(strip, ld, moves.position + e, square);
#pragma GCC unroll 16
      for (int q = 0; q < L; q++) {
        const int32_t to = moves.to[e + q], from = moves.from[e + q];
        if (to >= 0) add_vector<T>(square[q], moves.weight[e + q], F + to * ldF + i);
        if (from >= 0) add_vector<T>(square[q], -moves.weight[e + q], F + from * ldF + i);
      }
    }
    for (; e < moves.count; e++) {
      T column[L];
      for (Index q = 0; q < height; q++) column[q] = strip[q * ld + moves.position[e]];
      apply<T>(column, height, moves, e, F + i, ldF);
    }
  }
}

// Nearest implicit centre from the per-cluster sums; returns how many points moved. Ties go to the lower cluster.
template <class T> Index gram_assign(const GramTask<T>& task) {
  constexpr Index strip = 64;
  Index moved = 0;
  for (Index first = 0; first < task.n; first += strip) {
    const Index count = task.n - first < strip ? task.n - first : strip;
    double best[strip];
    int32_t label[strip];
    for (Index q = 0; q < count; q++) best[q] = std::numeric_limits<double>::infinity(), label[q] = 0;
    for (Index c = 0; c < task.k; c++) {
      const double *f = task.F + c * task.ld + first, scale = -2 * task.scale[c], offset = task.offset[c];
      for (Index q = 0; q < count; q++) {
        const double value = f[q] * scale + offset;
        label[q] = value < best[q] ? int32_t(c) : label[q];
        best[q] = value < best[q] ? value : best[q];
      }
    }
    for (Index q = 0; q < count; q++) {
      moved += task.labels[first + q] != label[q];
      task.labels[first + q] = label[q];
      const double distance = task.diagonal[first + q] + best[q];
      if (task.distances) task.distances[first + q] = distance > 0 ? distance : 0;
    }
  }
  return moved;
}

} // namespace MERCER_ISA
} // namespace mercer

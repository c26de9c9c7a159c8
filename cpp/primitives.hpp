// The contract between the bindings and the compiled primitives: plain views and one table of functions.
//
// A primitive works on one block, in the caller's buffers: it allocates nothing, starts no thread and knows
// nothing of clusters' meaning, files or Python. The same table is filled once per instruction set.
#pragma once
#include <cstdint>

namespace mercer {

using Index = int64_t;

// Rows of a matrix: dense with a row stride, or CSR when `indptr` is set.
template <class T> struct Rows {
  Index n = 0, d = 0;
  const T* data = nullptr;
  Index stride = 0;                // dense: elements between rows
  const int64_t* indptr = nullptr; // CSR: absolute positions in `indices` and `data`
  const int32_t* indices = nullptr;
};

enum class KernelKind : int { linear, rbf, laplacian, polynomial, sigmoid, cosine };

struct Kernel {
  KernelKind kind;
  double gamma, coef0;
  int degree;
};

enum class Metric : int { l2, l1 };

// Points that changed cluster: position in the block, old and new cluster (-1: none), weight.
struct Moves {
  Index count = 0;
  const int32_t *position = nullptr, *from = nullptr, *to = nullptr;
  const double* weight = nullptr;
};

template <class T> struct AssignTask {
  Rows<T> points;
  const T* centers;   // (k, d)
  const T* offset;    // (k,) half the squared norms of the centres, minus half their sums for l1; infinite: no centre
  Index k;
  Metric metric;
  const T* weights;   // (n,) or null: ones
  const T* norms;     // (n,) squared norms of the points (plus residual); l2 only
  int32_t* labels;    // (n,) in: previous, out: nearest
  T* distances;       // (n,) or null
  // Bounds, or null. gaps (n,): out, how much nearer each point is to its centre than to any other, at least. With
  // shifts (k,), how far each centre has moved since, gaps go in too; points that cannot have changed are passed over,
  // and sums and totals get the differences that moved points make. slack: rounding of a difference of two scores.
  T* gaps;
  const T* shifts;
  T slack;
  double *sums, *totals; // (k, d), (k,) added to; or both null
  T* scratch;
};

struct AssignResult {
  double objective;
  Index moved;
};

template <class T> struct SoftTask {
  Rows<T> points;
  const T* norms;   // (n,) squared norms plus residual
  const T* centers; // (k, d)
  const T* half;    // (k,)
  const T* nu;      // (k,) possibilistic scale; null: fuzzy
  Index k;
  double m;         // above 1, or 1 without nu: the hard rule
  // The centres of the step before, or null: memberships that are not kept are then computed again to tell the change.
  const T *old_centers, *old_half, *old_nu;
  const T* weights;   // (n,) or null
  T* memberships;     // (k, n), or null; in: previous, out: new
  Index ld;           // between the rows of memberships
  int32_t* labels;    // (n,) largest membership, or null
  T* own;             // (n,) squared distance to the centre of that label, or null; only with labels
  double *sums, *totals; // (k, d), (k,) added to
  double *costs;         // (k,) w u^m d2, added to; or null
  T* peaks;              // (k,) largest membership of a point of positive weight, raised; or null
  T* scratch;
};

struct SoftResult {
  double objective, change; // change: largest |new - previous| membership, when the previous are known
};

template <class T> struct GramTask { // D(i, c) = diagonal_i - 2 F_ci scale_c + offset_c
  Index n, k, ld;
  const double *F, *scale, *offset, *diagonal;
  int32_t* labels;   // in: previous, out: nearest
  double* distances; // (n,) out, or null
};

template <class T> struct Primitives {
  int panel_width;
  Index (*packed_size)(Index m, Index d);
  void (*pack)(const Rows<T>&, const T* norms, T* out);
  void (*norms)(const Rows<T>&, int power, T* out);
  void (*hash)(const Rows<T>&, uint64_t* out);
  void (*kernel_block)(const Kernel&, const Rows<T>&, const T* x_norms, const T* packed, Index m, T* out,
                       Index ld);
  Index (*product_scratch)();
  void (*kernel_product)(const Kernel&, const Rows<T>&, const T* x_norms, const T* packed, Index m,
                         const T* packed_v, Index p, T* out, Index ld, T* scratch);
  Index (*assign_scratch)(Index d);
  AssignResult (*assign)(const AssignTask<T>&);
  Index (*soft_scratch)(Index k, Index d);
  SoftResult (*soft_step)(const SoftTask<T>&);
  void (*segment_rows)(const T* tile, Index ld, Index columns, const Moves&, double* F, Index ldF);
  void (*segment_columns)(const T* tile, Index ld, Index rows, const Moves&, double* F, Index ldF);
  Index (*segment_scratch)(Index columns);
  void (*segment_transposed)(const T* tile, Index ld, Index rows, Index columns, const Moves&, double* F, Index ldF,
                             T* scratch);
  Index (*gram_assign)(const GramTask<T>&);
  void (*hadamard)(T* data, Index rows, Index length, Index ld);
};

// On bytes and half precision, which have no second type to be a table for.
struct Storage {
  void (*narrow)(const float* in, Index n, uint16_t* out); // float32 to the bits of float16
  void (*widen)(const uint16_t* in, Index n, float* out);
  uint64_t (*checksum)(const uint8_t* data, Index bytes, uint64_t seed);
};

#ifdef MERCER_X86
#define MERCER_TABLES(X) X(v2) X(v3) X(v4)
#else
#define MERCER_TABLES(X) X(native)
#endif
#define MERCER_DECLARE(isa)                                                                                   \
  namespace isa {                                                                                             \
  const Primitives<float>& table32();                                                                         \
  const Primitives<double>& table64();                                                                        \
  const Storage& storage();                                                                                   \
  }
MERCER_TABLES(MERCER_DECLARE)
#undef MERCER_DECLARE

} // namespace mercer

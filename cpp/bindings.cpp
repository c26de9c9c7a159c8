// The Python face of the core: checks shapes, releases the GIL, and calls the table of the chosen instruction set.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "primitives.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mercer {
namespace {

// ---- choice of the instruction set ----------------------------------------------------------------------------

struct Version {
  const char* name;
  bool usable;
  const Primitives<float>* f32;
  const Primitives<double>* f64;
  const Storage* storage;
};

std::vector<Version> versions() { // best last
#ifdef MERCER_X86
  __builtin_cpu_init();
  const bool v2 = __builtin_cpu_supports("sse4.2");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512cd");
  return {{"x86-64-v2", v2, &v2::table32(), &v2::table64(), &v2::storage()},
          {"x86-64-v3", v3, &v3::table32(), &v3::table64(), &v3::storage()},
          {"x86-64-v4", v4, &v4::table32(), &v4::table64(), &v4::storage()}};
#else
  return {{"native", true, &native::table32(), &native::table64(), &native::storage()}};
#endif
}

Version active{"none", false, nullptr, nullptr, nullptr};

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const Version& v : versions())
    if (v.usable) names.push_back(v.name);
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

void use(const std::string& name) {
  for (const Version& v : versions())
    if (v.usable && (name == v.name || name == std::string(v.name).substr(std::string(v.name).rfind('-') + 1))) {
      active = v;
      return;
    }
  throw std::invalid_argument("instruction set '" + name + "' is not available here; this machine has " +
                              joined(instruction_sets()));
}

template <class T> const Primitives<T>& table();
template <> const Primitives<float>& table<float>() { return *active.f32; }
template <> const Primitives<double>& table<double>() { return *active.f64; }

// ---- arguments ------------------------------------------------------------------------------------------------

template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
template <class T> using Optional = std::optional<T>;

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

template <class T> void require_rows(const Matrix<T>& a, Index n, Index d, const char* message) {
  require(Index(a.shape(0)) == n && Index(a.shape(1)) == d, message);
  require(d < 2 || n == 0 || a.stride(1) == 1, "columns must be contiguous");
}

template <class V> void require_size(const V& v, Index n, const char* message) {
  require(Index(v.shape(0)) >= n, message);
}

template <class T> T* optional_data(const Optional<Vector<T>>& v, Index n, const char* message) {
  if (!v) return nullptr;
  require_size(*v, n, message);
  return v->data();
}

template <class A> Index row_stride(const A& a) { return a.shape(0) > 1 ? a.stride(0) : Index(a.shape(1)); }

template <class T> struct RowsView { // Rows<T> and the arrays it looks at
  Rows<T> rows;
  nb::object owner;
};

template <class T> RowsView<T> dense_rows(Matrix<const T> a) {
  RowsView<T> view;
  require_rows(a, a.shape(0), a.shape(1), "");
  view.rows.n = a.shape(0), view.rows.d = a.shape(1), view.rows.data = a.data(), view.rows.stride = row_stride(a);
  view.owner = nb::cast(a);
  return view;
}

template <class T>
RowsView<T> csr_rows(Vector<const int64_t> indptr, Vector<const int32_t> indices, Vector<const T> data, Index d) {
  require(indptr.shape(0) >= 1, "indptr needs at least one entry");
  const Index n = indptr.shape(0) - 1, stored = indices.shape(0);
  require(Index(data.shape(0)) == stored, "indices and data differ in length");
  require(d >= 0 && d <= std::numeric_limits<int32_t>::max(), "the number of columns is out of range");
  require(indptr.data()[0] >= 0 && indptr.data()[n] <= stored, "indptr points outside the stored values");
  for (Index i = 0; i < n; i++) require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not decrease");
  for (Index p = indptr.data()[0]; p < indptr.data()[n]; p++)
    require(indices.data()[p] >= 0 && indices.data()[p] < d, "a column index is out of range");
  RowsView<T> view;
  view.rows.n = n, view.rows.d = d, view.rows.data = data.data();
  view.rows.indptr = indptr.data(), view.rows.indices = indices.data();
  view.owner = nb::make_tuple(indptr, indices, data);
  return view;
}

template <class T> RowsView<T> slice(const RowsView<T>& view, Index begin, Index end) {
  require(0 <= begin && begin <= end && end <= view.rows.n, "slice out of range");
  RowsView<T> part = view;
  part.rows.n = end - begin;
  if (view.rows.indptr)
    part.rows.indptr += begin;
  else
    part.rows.data += begin * view.rows.stride;
  return part;
}

Kernel make_kernel(int kind, double gamma, double coef0, int degree) {
  require(kind >= 0 && kind <= int(KernelKind::cosine), "unknown kind of kernel");
  require(degree >= 1, "degree must be at least 1");
  return {KernelKind(kind), gamma, coef0, degree};
}

Moves make_moves(const Vector<const int32_t>& position, const Vector<const int32_t>& from,
                 const Vector<const int32_t>& to, const Vector<const double>& weight, Index positions, Index clusters,
                 bool ascending) {
  const Index count = position.shape(0);
  require(Index(from.shape(0)) == count && Index(to.shape(0)) == count && Index(weight.shape(0)) == count,
          "the arrays of moves differ in length");
  for (Index e = 0; e < count; e++) {
    require(position.data()[e] >= 0 && position.data()[e] < positions, "a moved position is outside the tile");
    require(!ascending || e == 0 || position.data()[e - 1] < position.data()[e], "moved columns must ascend");
    require(from.data()[e] >= -1 && from.data()[e] < clusters && to.data()[e] >= -1 && to.data()[e] < clusters,
            "a cluster number is out of range");
  }
  return {count, position.data(), from.data(), to.data(), weight.data()};
}

// ---- one function per primitive -------------------------------------------------------------------------------

template <class T> void pack(const RowsView<T>& rows, const Optional<Vector<const T>>& norms, Vector<T> out) {
  const T* n = optional_data(norms, rows.rows.n, "one norm per row is needed");
  require_size(out, table<T>().packed_size(rows.rows.n, rows.rows.d), "the packed buffer is too small");
  nb::gil_scoped_release release;
  table<T>().pack(rows.rows, n, out.data());
}

template <class T> void norms(const RowsView<T>& rows, int power, Vector<T> out) {
  require(power == 1 || power == 2 || power == -2, "power must be 1, 2 or -2");
  require_size(out, rows.rows.n, "out is too short");
  nb::gil_scoped_release release;
  table<T>().norms(rows.rows, power, out.data());
}

template <class T> void hash(const RowsView<T>& rows, Vector<uint64_t> out) {
  require_size(out, rows.rows.n, "out is too short");
  nb::gil_scoped_release release;
  table<T>().hash(rows.rows, out.data());
}

template <class T>
void kernel_block(std::tuple<int, double, double, int> spec, const RowsView<T>& rows,
                  const Optional<Vector<const T>>& x_norms, Vector<const T> packed, Index m, Matrix<T> out) {
  const Kernel kernel = std::apply(make_kernel, spec);
  const T* x = optional_data(x_norms, rows.rows.n, "one norm per row is needed");
  require(m >= 0 && m <= Index(packed.shape(0)), "the packed block does not fit these rows");
  require_size(packed, table<T>().packed_size(m, rows.rows.d), "the packed block does not fit these rows");
  require_rows(out, rows.rows.n, m, "out must be (rows, m)");
  nb::gil_scoped_release release;
  table<T>().kernel_block(kernel, rows.rows, x, packed.data(), m, out.data(), row_stride(out));
}

template <class T>
void kernel_product(std::tuple<int, double, double, int> spec, const RowsView<T>& rows,
                    const Optional<Vector<const T>>& x_norms, Vector<const T> packed, Index m,
                    Vector<const T> packed_v, Matrix<T> out, Vector<T> scratch) {
  const Kernel kernel = std::apply(make_kernel, spec);
  const T* x = optional_data(x_norms, rows.rows.n, "one norm per row is needed");
  const Index p = out.shape(1);
  require(m >= 1 && m <= Index(packed.shape(0)), "the packed block does not fit these rows");
  require_size(packed, table<T>().packed_size(m, rows.rows.d), "the packed block does not fit these rows");
  require_size(packed_v, table<T>().packed_size(p, m), "the packed right factor is too small");
  require_rows(out, rows.rows.n, p, "out must be (rows, columns of V)");
  require_size(scratch, table<T>().product_scratch(), "scratch is too small");
  nb::gil_scoped_release release;
  table<T>().kernel_product(kernel, rows.rows, x, packed.data(), m, packed_v.data(), p, out.data(), row_stride(out),
                            scratch.data());
}

// The sums and totals of centres come together or not at all.
void set_sums(double*& sums, double*& totals, const Optional<Matrix<double>>& s, const Optional<Vector<double>>& t,
              Index k, Index d) {
  require(bool(s) == bool(t), "give both sums and totals, or neither");
  sums = totals = nullptr;
  if (!s) return;
  require_rows(*s, k, d, "sums must be (k, d)");
  require(k < 2 || s->stride(0) == d, "sums must be contiguous");
  require_size(*t, k, "totals is too short");
  sums = s->data(), totals = t->data();
}

template <class T>
std::tuple<double, Index> assign(const RowsView<T>& points, Matrix<const T> centers, Vector<const T> offset, int metric,
                                 const Optional<Vector<const T>>& weights, const Optional<Vector<const T>>& norms,
                                 Vector<int32_t> labels, const Optional<Vector<T>>& distances,
                                 const Optional<Matrix<double>>& sums, const Optional<Vector<double>>& totals,
                                 Vector<T> scratch, const Optional<Vector<T>>& gaps,
                                 const Optional<Vector<const T>>& shifts, double slack) {
  const Index n = points.rows.n, d = points.rows.d;
  AssignTask<T> task{};
  task.points = points.rows, task.k = centers.shape(0), task.metric = Metric(metric);
  require(metric == int(Metric::l2) || metric == int(Metric::l1), "metric must be 0 (l2) or 1 (l1)");
  require(task.k >= 1, "at least one centre is needed");
  require_rows(centers, task.k, d, "centres and points differ in their columns");
  require(task.k < 2 || Index(centers.stride(0)) == d, "centres must be contiguous");
  require_size(offset, task.k, "offset is too short");
  require_size(labels, n, "labels is too short");
  require_size(scratch, table<T>().assign_scratch(d), "scratch is too small");
  task.centers = centers.data(), task.offset = offset.data(), task.labels = labels.data(), task.scratch = scratch.data();
  task.weights = optional_data(weights, n, "one weight per point is needed");
  task.norms = optional_data(norms, n, "one norm per point is needed");
  task.distances = optional_data(distances, n, "distances is too short");
  require(task.norms || task.metric == Metric::l1, "l2 needs the points' squared norms");
  task.gaps = optional_data(gaps, n, "one gap per point is needed");
  task.shifts = optional_data(shifts, task.k, "one shift per centre is needed");
  task.slack = T(slack);
  require(!task.shifts || task.gaps, "shifts need gaps");
  require(slack >= 0, "slack must not be negative");
  for (Index i = 0; task.shifts && i < n; i++)
    require(task.labels[i] >= 0 && task.labels[i] < task.k, "with shifts, labels must be those of before");
  set_sums(task.sums, task.totals, sums, totals, task.k, d);
  nb::gil_scoped_release release;
  const AssignResult result = table<T>().assign(task);
  return {result.objective, result.moved};
}

template <class T>
std::tuple<double, double> soft_step(const RowsView<T>& points, Vector<const T> norms, Matrix<const T> centers,
                                     Vector<const T> half, const Optional<Vector<const T>>& nu, double m,
                                     const Optional<Vector<const T>>& weights, const Optional<Matrix<T>>& memberships,
                                     const Optional<Vector<int32_t>>& labels, Matrix<double> sums,
                                     Vector<double> totals, Vector<T> scratch, const Optional<Vector<double>>& costs,
                                     const Optional<Vector<T>>& peaks, const Optional<Matrix<const T>>& old_centers,
                                     const Optional<Vector<const T>>& old_half,
                                     const Optional<Vector<const T>>& old_nu, const Optional<Vector<T>>& own) {
  const Index n = points.rows.n, d = points.rows.d;
  SoftTask<T> task{};
  task.points = points.rows, task.k = centers.shape(0), task.m = m;
  require(task.k >= 1, "at least one centre is needed");
  require(m >= 1 && std::isfinite(m), "m must be at least 1 and finite");
  require(m > 1 || !nu, "m must be above 1 with nu");
  require(nu || m * std::log(double(task.k)) < 600, "m is so large that memberships to that power are zero");
  require_rows(centers, task.k, d, "centres and points differ in their columns");
  require(task.k < 2 || Index(centers.stride(0)) == d, "centres must be contiguous");
  require_size(half, task.k, "half is too short");
  require_size(norms, n, "one norm per point is needed");
  require_size(scratch, table<T>().soft_scratch(task.k, d), "scratch is too small");
  task.norms = norms.data(), task.centers = centers.data(), task.half = half.data(), task.scratch = scratch.data();
  task.nu = optional_data(nu, task.k, "one nu per cluster is needed");
  task.weights = optional_data(weights, n, "one weight per point is needed");
  task.labels = optional_data(labels, n, "labels is too short");
  if (memberships) {
    require_rows(*memberships, task.k, n, "memberships must be (k, n)");
    task.memberships = memberships->data(), task.ld = row_stride(*memberships);
  }
  set_sums(task.sums, task.totals, sums, totals, task.k, d);
  task.costs = optional_data(costs, task.k, "costs is too short");
  task.own = optional_data(own, n, "own is too short");
  require(!task.own || task.labels, "own distances come with labels");
  task.peaks = optional_data(peaks, task.k, "peaks is too short");
  require(bool(old_centers) == bool(old_half) && (!old_nu || old_centers), "old centres come with their halves");
  require(!old_centers || bool(old_nu) == bool(nu), "both steps must follow one rule");
  if (old_centers) {
    require_rows(*old_centers, task.k, d, "old centres and centres differ in their shape");
    require(task.k < 2 || Index(old_centers->stride(0)) == d, "old centres must be contiguous");
    task.old_centers = old_centers->data();
  }
  task.old_half = optional_data(old_half, task.k, "old_half is too short");
  task.old_nu = optional_data(old_nu, task.k, "old_nu is too short");
  nb::gil_scoped_release release;
  const SoftResult result = table<T>().soft_step(task);
  return {result.objective, result.change};
}

template <class T>
void segment(bool by_rows, Matrix<const T> tile, Vector<const int32_t> position, Vector<const int32_t> from,
             Vector<const int32_t> to, Vector<const double> weight, Matrix<double> F,
             const Optional<Vector<T>>& scratch) {
  const Index along = tile.shape(by_rows ? 0 : 1), across = tile.shape(by_rows ? 1 : 0), k = F.shape(0);
  require_rows(tile, tile.shape(0), tile.shape(1), "");
  require_rows(F, k, across, "F must be (clusters, columns) for rows, (clusters, rows) for columns");
  require(!scratch || !by_rows, "scratch is for columns only");
  T* room = optional_data(scratch, table<T>().segment_scratch(along), "scratch is too small");
  const Moves moves = make_moves(position, from, to, weight, along, k, !by_rows && !room);
  const Index ld = row_stride(tile), ldF = row_stride(F);
  nb::gil_scoped_release release;
  if (room) return table<T>().segment_transposed(tile.data(), ld, across, along, moves, F.data(), ldF, room);
  (by_rows ? table<T>().segment_rows : table<T>().segment_columns)(tile.data(), ld, across, moves, F.data(), ldF);
}

Index gram_assign(Matrix<const double> F, Vector<const double> scale, Vector<const double> offset,
                  Vector<const double> diagonal, Vector<int32_t> labels, const Optional<Vector<double>>& distances) {
  GramTask<double> task{};
  task.k = F.shape(0), task.n = F.shape(1), task.ld = row_stride(F);
  require(task.k >= 1, "at least one cluster is needed");
  require_rows(F, task.k, task.n, "");
  require_size(scale, task.k, "scale is too short");
  require_size(offset, task.k, "offset is too short");
  require_size(diagonal, task.n, "diagonal is too short");
  require_size(labels, task.n, "labels is too short");
  task.distances = optional_data(distances, task.n, "distances is too short");
  task.F = F.data(), task.scale = scale.data(), task.offset = offset.data(), task.diagonal = diagonal.data();
  task.labels = labels.data();
  nb::gil_scoped_release release;
  return table<double>().gram_assign(task);
}

template <class T> void hadamard(Matrix<T> a) {
  const Index length = a.shape(1);
  require(length > 0 && (length & (length - 1)) == 0, "the length of a row must be a power of two");
  require_rows(a, a.shape(0), length, "");
  nb::gil_scoped_release release;
  table<T>().hadamard(a.data(), a.shape(0), length, row_stride(a));
}

void narrow(Vector<const float> in, Vector<uint16_t> out) {
  require_size(out, in.shape(0), "out is too short");
  nb::gil_scoped_release release;
  active.storage->narrow(in.data(), in.shape(0), out.data());
}

void widen(Vector<const uint16_t> in, Vector<float> out) {
  require_size(out, in.shape(0), "out is too short");
  nb::gil_scoped_release release;
  active.storage->widen(in.data(), in.shape(0), out.data());
}

uint64_t checksum(Vector<const uint8_t> data, uint64_t seed) {
  nb::gil_scoped_release release;
  return active.storage->checksum(data.data(), data.shape(0), seed);
}

template <class T> void bind(nb::module_& m, const char* rows_name) {
  nb::class_<RowsView<T>>(m, rows_name, "Rows of a matrix, dense or CSR, as the core sees them")
      .def("slice", &slice<T>, "begin"_a, "end"_a, "Rows [begin, end), without a copy")
      .def_prop_ro("n", [](const RowsView<T>& v) { return v.rows.n; })
      .def_prop_ro("d", [](const RowsView<T>& v) { return v.rows.d; });
  m.def("dense_rows", &dense_rows<T>, "array"_a.noconvert());
  m.def("csr_rows", &csr_rows<T>, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "d"_a);
  m.def("pack", &pack<T>, "rows"_a, "norms"_a.noconvert().none(), "out"_a.noconvert());
  m.def("norms", &norms<T>, "rows"_a, "power"_a, "out"_a.noconvert());
  m.def("row_hash", &hash<T>, "rows"_a, "out"_a.noconvert());
  m.def("kernel_block", &kernel_block<T>, "kernel"_a, "rows"_a, "x_norms"_a.noconvert().none(),
        "packed"_a.noconvert(), "m"_a, "out"_a.noconvert());
  m.def("kernel_product", &kernel_product<T>, "kernel"_a, "rows"_a, "x_norms"_a.noconvert().none(),
        "packed"_a.noconvert(), "m"_a, "packed_v"_a.noconvert(), "out"_a.noconvert(), "scratch"_a.noconvert());
  m.def("assign", &assign<T>, "points"_a, "centers"_a.noconvert(), "offset"_a.noconvert(), "metric"_a,
        "weights"_a.noconvert().none(), "norms"_a.noconvert().none(), "labels"_a.noconvert(),
        "distances"_a.noconvert().none(), "sums"_a.noconvert().none(), "totals"_a.noconvert().none(),
        "scratch"_a.noconvert(), "gaps"_a.noconvert() = nb::none(), "shifts"_a.noconvert() = nb::none(),
        "slack"_a = 0.0);
  m.def("soft_step", &soft_step<T>, "points"_a, "norms"_a.noconvert(), "centers"_a.noconvert(), "half"_a.noconvert(),
        "nu"_a.noconvert().none(), "m"_a, "weights"_a.noconvert().none(), "memberships"_a.noconvert().none(),
        "labels"_a.noconvert().none(), "sums"_a.noconvert(), "totals"_a.noconvert(), "scratch"_a.noconvert(),
        "costs"_a.noconvert() = nb::none(), "peaks"_a.noconvert() = nb::none(),
        "old_centers"_a.noconvert() = nb::none(), "old_half"_a.noconvert() = nb::none(),
        "old_nu"_a.noconvert() = nb::none(), "own"_a.noconvert() = nb::none());
  m.def("segment", &segment<T>, "by_rows"_a, "tile"_a.noconvert(), "position"_a.noconvert(), "old"_a.noconvert(),
        "new"_a.noconvert(), "weight"_a.noconvert(), "F"_a.noconvert(), "scratch"_a.noconvert() = nb::none());
  m.def("hadamard", &hadamard<T>, "a"_a.noconvert());
}

// Sizes of buffers, in elements of float32 (itemsize 4) or float64 (8).
template <class F> auto for_itemsize(int itemsize, F&& f, Index rows = 0, Index d = 0) {
  require(itemsize == 4 || itemsize == 8, "itemsize must be 4 or 8");
  require(rows >= 0 && d >= 0, "a size must not be negative");
  return itemsize == 4 ? f(table<float>()) : f(table<double>());
}

} // namespace
} // namespace mercer

NB_MODULE(_core, m) {
  using namespace mercer;
  nb::set_leak_warnings(false); // a model that lives until the interpreter ends, as globals do, is no leak
  m.doc() = "Mercer's compiled core: pure functions on one block, in the caller's buffers, with the GIL released.";
  m.def("instruction_sets", &instruction_sets, "What this machine can run, best last");
  m.def("use", &use, "name"_a, "Choose an instruction set; packed blocks made before are no longer valid");
  m.def("active", [] { return std::string(active.name); }, "The instruction set in use");
  m.def("packed_size", [](Index rows, Index d, int itemsize) {
    return for_itemsize(itemsize, [&](const auto& t) { return t.packed_size(rows, d); }, rows, d);
  }, "rows"_a, "d"_a, "itemsize"_a);
  m.def("product_scratch", [](int itemsize) {
    return for_itemsize(itemsize, [](const auto& t) { return t.product_scratch(); });
  }, "itemsize"_a);
  m.def("segment_scratch", [](Index columns, int itemsize) {
    return for_itemsize(itemsize, [&](const auto& t) { return t.segment_scratch(columns); }, 0, columns);
  }, "columns"_a, "itemsize"_a);
  m.def("assign_scratch", [](Index d, int itemsize) {
    return for_itemsize(itemsize, [&](const auto& t) { return t.assign_scratch(d); }, 0, d);
  }, "d"_a, "itemsize"_a);
  m.def("soft_scratch", [](Index k, Index d, int itemsize) {
    return for_itemsize(itemsize, [&](const auto& t) { return t.soft_scratch(k, d); }, k, d);
  }, "k"_a, "d"_a, "itemsize"_a);
  bind<float>(m, "Rows32");
  bind<double>(m, "Rows64");
  m.def("gram_assign", &gram_assign, "F"_a.noconvert(), "scale"_a.noconvert(), "offset"_a.noconvert(),
        "diagonal"_a.noconvert(), "labels"_a.noconvert(), "distances"_a.noconvert().none());

  m.def("narrow", &narrow, "values"_a.noconvert(), "out"_a.noconvert());
  m.def("widen", &widen, "halves"_a.noconvert(), "out"_a.noconvert());
  m.def("checksum", &checksum, "data"_a.noconvert(), "seed"_a);

  const auto available = instruction_sets();
  if (available.empty()) throw std::runtime_error("this processor has none of the instruction sets Mercer is built for");
  const char* forced = std::getenv("MERCER_ISA");
  use(forced && *forced ? forced : available.back());
}

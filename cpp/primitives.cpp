// Fills the table of primitives for one instruction set; compiled once for each, with MERCER_ISA naming it.
#include "centers.hpp"
#include "gram.hpp"
#include "hadamard.hpp"
#include "kernels.hpp"
#include "rows.hpp"
#include "soft.hpp"
#include "storage.hpp"

namespace mercer {
namespace MERCER_ISA {

template <class T> constexpr Primitives<T> make_table() {
  return {panel_width<T>,     packed_size<T>,  pack<T>,           norms<T>,        hash<T>,
          kernel_block<T>,    product_scratch<T>, kernel_product<T>, assign_scratch<T>, assign<T>,
          soft_scratch<T>,    soft_step<T>,    segment_rows<T>,   segment_columns<T>, segment_scratch<T>,
          segment_transposed<T>, gram_assign<T>,
          hadamard<T>};
}

const Primitives<float>& table32() {
  static constexpr Primitives<float> table = make_table<float>();
  return table;
}
const Primitives<double>& table64() {
  static constexpr Primitives<double> table = make_table<double>();
  return table;
}
const Storage& storage() {
  static constexpr Storage table = {narrow, widen_half, checksum};
  return table;
}

} // namespace MERCER_ISA
} // namespace mercer

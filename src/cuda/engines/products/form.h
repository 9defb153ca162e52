// A contraction as the kernels use it: C(m, n) = sum over k of A(m, k) * B(k, n), with the geometry
// of both operands as numbers. Every op is brought to this form here; no tile sizes, no source
// text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/kernels/gemm/gemm_args.cuh"
#include "plan/program/region.h"

namespace tenon::cuda {

struct OperandForm {
  ValueId value = kNoValue;
  DType dtype = DType::Float32;
  std::int64_t offset = 0;  // of the element with all coordinates 0, in elements
  GemmOperand operand;
  int outer_digits = 1, inner_digits = 1;  // 1 or 3
  int window = 0;
  std::int64_t last_outer = 1, last_inner = 1;  // sizes of the axes' last digits
  bool along_k = true;                          // order of its tiles in shared memory
  int vector = 1;      // elements that can be copied at once: 16 bytes, or 1
  bool pairs = false;  // 16-bit elements that cannot: two neighbours along k at a time

  // With a prologue, which may belong to either operand of the region:
  const MapProgram* prologue = nullptr;  // the region's
  DType element = DType::Float32;        // dtype after the prologue; without one, dtype
  std::vector<View> layouts;             // layouts of further operands over the operand
  std::vector<GemmLayout> placed;        // the same over the form's digits
};

/// The number of the view's layout in OperandForm::layouts, or one of these constants.
inline constexpr int kOwnLayout = -1, kOneElement = -2, kNewLayout = -3;
int layout_of(const OperandForm& operand, const View& own, const View& view, const Shape& shape);

struct ContractionForm {
  GemmProblem problem;  // sizes, batches, positions of results; without tiles
  OperandForm a, b;
  std::int64_t batch = 1;
  int inner_axis = 0;    // 1: m holds further batches, 2: n does
  int store_vector = 1;  // results that can be stored at once: 4 or 1
  bool wide = false;     // 64-bit offsets
  bool plain = false;    // an axis beyond 2^31 or a window of too many taps: the plain kernel only
};

/// The form of a matrix product or convolution; `values` give the operands' dtypes. The region must
/// outlive a form with prologues.
ContractionForm contraction_form(const Region& region, std::span<const Value> values);

}  // namespace tenon::cuda

// The prologue of a contraction's operand as a device struct, which the native kernels apply when
// they load the operand.
#pragma once

#include <span>
#include <string>

#include "cuda/engines/maps/print_map.h"
#include "cuda/engines/products/form.h"

namespace tenon::cuda {

/// `code` begins with its #include lines and defines `struct tenon::cuda::NAME`, whose members are
/// all 8 bytes, in the order of `arguments`, with
///   Memory: the operand's elements; Result: what they become, in registers; kLayouts, and
///   GemmLayout layouts[kLayouts] when there are any;
///   template <int N> struct Held;
///   template <int N, class Offset>  // N: 1 or the operand's vector
///   __device__ Held<N> hold(long long own, const Offset* more) const;
///   template <int N>
///   __device__ void apply(const Memory (&x)[N], const Held<N>& held, Result (&y)[N]) const;
/// hold() loads and draws the prologue's further operands for the N neighbours x. `own` is the
/// offset of the first neighbour from GemmOperand::data, more[j] its offset in layout j, in
/// elements.
struct PrintedPrologue {
  std::string code;
  ArgumentBlock arguments;
};
/// `own`, `shape`: the operand's view and axes in the region.
PrintedPrologue print_prologue(const std::string& name, const OperandForm& operand, const View& own,
                               const Shape& shape, std::span<const Value> values);

}  // namespace tenon::cuda

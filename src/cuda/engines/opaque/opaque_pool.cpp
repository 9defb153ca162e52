// Prepares launches of pooling and its gradients. A kernel's source contains the window's geometry;
// sizes are arguments, so that another batch size needs no compilation. Gradients of overlapping
// windows are computed by tiles in shared memory if the tiles fit.
#include <algorithm>
#include <numeric>

#include "base/index.h"
#include "cuda/engines/opaque/opaque_kernels.h"
#include "cuda/kernels/opaque/pool_args.cuh"

namespace tenon::cuda {
namespace {

bool spreads(Op op) { return op == Op::MaxPool2dGrad || op == Op::AvgPool2dGrad; }

/// True if every window is inside an array of that size.
bool inside(std::int64_t size, std::int64_t windows, std::int64_t kernel, std::int64_t stride,
            std::int64_t pad, std::int64_t dil) {
  return pad == 0 && (windows - 1) * stride + (kernel - 1) * dil < size;
}

bool all_inside(const PoolAttrs& v, const PoolArgs& args) {
  return inside(args.height, args.windows_h, v.kernel_h, v.stride_h, v.pad_h, v.dil_h) &&
         inside(args.width, args.windows_w, v.kernel_w, v.stride_w, v.pad_w, v.dil_w);
}

/// True if no element is in two windows, and a thread's cell is small.
bool is_disjoint(const PoolAttrs& v, const PoolArgs& args) {
  return all_inside(v, args) && (v.kernel_h - 1) * v.dil_h < v.stride_h &&
         (v.kernel_w - 1) * v.dil_w < v.stride_w && v.stride_h * v.stride_w <= 16;
}

std::string window_type(const PoolAttrs& v, const PoolArgs& args) {
  return cat("Window<", v.kernel_h, ", ", v.kernel_w, ", ", v.stride_h, ", ", v.stride_w, ", ",
             v.pad_h, ", ", v.pad_w, ", ", v.dil_h, ", ", v.dil_w, ", ",
             truth(v.count_include_pad != 0), ", ", truth(all_inside(v, args)), ">");
}

/// Number of planes that a block stages at a time: a multiple of 16 bytes; 0 if they are too large.
int planes_of_block(const PoolArgs& args, DType dtype) {
  const std::int64_t plane = args.height * args.width;
  const std::int64_t least =
      16 / std::gcd(std::int64_t{16}, plane * static_cast<std::int64_t>(item_size(dtype)));
  return static_cast<int>(kPoolStaged / (least * plane) * least);
}

/// Tiles of a gradient with overlapping windows: sides, and planes per block.
struct PoolTile {
  std::int64_t side = 0, planes = 0;
};

/// None if the windows that overlap a tile do not fit in shared memory, or if there are too many
/// blocks.
PoolTile tile_of(const PoolAttrs& v, const PoolArgs& args, DType dtype) {
  constexpr std::int64_t kShared = 32768;
  const PoolTile tile = std::max(args.height, args.width) > 16 ? PoolTile{32, 1} : PoolTile{16, 4};
  const auto windows = [&tile](std::int64_t kernel, std::int64_t stride, std::int64_t dil) {
    return (tile.side - 1 + (kernel - 1) * dil) / stride + 1;
  };
  const std::int64_t bytes = 4 + (dtype == DType::Float64 ? 8 : 4);  // a place and a gradient
  const std::int64_t high = windows(v.kernel_h, v.stride_h, v.dil_h),
                     wide = windows(v.kernel_w, v.stride_w, v.dil_w);
  const bool fits = high <= kShared && wide <= kShared &&
                    high * wide * tile.planes * bytes <= kShared && !needs_wide(args.count);
  return fits ? tile : PoolTile();
}

struct Name {
  const char *function, *more;
};

Name name_of(Op op) {
  switch (op) {
    case Op::MaxPool2d:
      return {"max_pool", ", 0"};
    case Op::MaxPool2dGather:
      return {"max_pool", ", 1"};
    case Op::MaxPool2dGrad:
      return {"max_pool_grad", ""};
    case Op::AvgPool2d:
      return {"avg_pool", ""};
    default:
      return {"avg_pool_grad", ""};
  }
}

/// Pooling of NHWC feature maps. A gradient's first input has the tap numbers of the maxima in
/// their windows, the second result of the pooling.
std::unique_ptr<Kernel> prepare_pool_last(const OpaqueCall& call) {
  const bool spread = spreads(call.op.op), numbers = call.op.outs.size() > 1;
  const auto& v = call.op.attrs.as<PoolAttrs>();
  const Shape& pooled = numbers  ? call.value(call.op.outs[1]).shape
                        : spread ? call.op.shapes[1]
                                 : call.out().shape;
  const Shape& large = spread ? call.out().shape : call.op.shapes[0];
  PoolArgs args;
  args.height = large[1], args.width = large[2], args.channels = large[3];
  args.windows_h = pooled[1], args.windows_w = pooled[2];
  const std::int64_t groups = args.channels / kPoolLanes,
                     rows = spread ? divide_up(args.height, v.stride_h) : args.windows_h,
                     columns = spread ? divide_up(args.width, v.stride_w) : args.windows_w;
  args.groups = make_divisor(groups);
  args.rows = make_divisor(rows);
  args.columns = make_divisor(columns);
  args.count = large[0] * rows * columns * groups;
  auto kernel = std::make_unique<OpaqueKernel<PoolArgs>>(call, args, grid_over(args.count));
  const std::string wide = cat(", ", truth(needs_wide(args.count)));
  const char* function = spread ? "max_pool_grad_last" : "max_pool_last";
  kernel->compile_body(
      call.target, cat("tenon_", function), "opaque/pool.cuh", "PoolArgs",
      cat(function, "<", element_name(call.dtype(spread ? 1 : 0)), ", ", window_type(v, args), wide,
          spread ? "" : cat(", ", truth(numbers)), ">(a)"));
  return kernel;
}

}  // namespace

std::unique_ptr<Kernel> prepare_pool(const OpaqueCall& call) {
  if (call.op.channels_last) return prepare_pool_last(call);
  const Op op = call.op.op;
  const auto& v = call.op.attrs.as<PoolAttrs>();
  const Shape& out = call.out().shape;
  const Shape& large = spreads(op) ? out : call.op.shapes[0];
  const Shape& small = op == Op::MaxPool2dGrad   ? call.op.shapes[1]
                       : op == Op::AvgPool2dGrad ? call.op.shapes[0]
                                                 : out;
  PoolArgs args;
  args.height = large[2], args.width = large[3];
  args.windows_h = small[2], args.windows_w = small[3];
  const bool by_window = spreads(op) && is_disjoint(v, args);
  const Shape& threads = by_window ? small : out;
  args.count = threads.numel();
  args.rows = make_divisor(threads[2]);
  args.columns = make_divisor(threads[3]);
  args.planes = large[0] * large[1];
  const bool pairs = v.stride_w == 2 && args.width % 2 == 0;
  if (by_window && op == Op::MaxPool2dGrad && !pairs && args.count > 0)
    args.planes_of_block = planes_of_block(args, call.out().dtype);
  const bool staged = args.planes_of_block > 0;
  PoolTile tile;
  if (op == Op::MaxPool2dGrad && !by_window && args.count > 0)
    tile = tile_of(v, args, call.out().dtype);
  Grid grid = staged ? grid_over((args.planes + args.planes_of_block - 1) / args.planes_of_block *
                                 kFlatThreads)
                     : grid_over(args.count);
  if (tile.side > 0) {
    const std::int64_t rows = divide_up(args.height, tile.side),
                       columns = divide_up(args.width, tile.side);
    args.rows = make_divisor(rows);
    args.columns = make_divisor(columns);
    grid = grid_over(divide_up(args.planes, tile.planes) * rows * columns * kFlatThreads);
  }
  auto kernel = std::make_unique<OpaqueKernel<PoolArgs>>(call, args, grid);
  if (args.count == 0) return kernel;
  const bool wide = needs_wide(args.count);
  Name name = name_of(op);
  if (by_window) {
    name = {op == Op::MaxPool2dGrad ? "max_pool_grad_disjoint" : "avg_pool_grad_disjoint",
            pairs ? ", true" : ", false"};
  }
  std::string more = cat(", ", truth(wide), name.more);
  if (staged) name.function = "max_pool_grad_staged", more = "";
  if (tile.side > 0)
    name.function = "max_pool_grad_tiled", more = cat(", ", tile.side, ", ", tile.planes);
  kernel->compile_body(call.target, cat("tenon_", name.function), "opaque/pool.cuh", "PoolArgs",
                       cat(name.function, "<", element_name(call.out().dtype), ", ",
                           window_type(v, args), more, ">(a)"));
  return kernel;
}

}  // namespace tenon::cuda

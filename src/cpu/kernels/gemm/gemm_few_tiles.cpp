// A thread takes whole products one after another. Rows of A and B are read in place where their
// strides and the tile's width allow it, and packed otherwise.
#include "cpu/kernels/gemm/gemm_few_tiles.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/kernels/contract.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kTilesWork = 1 << 16;  // multiply-adds of one chunk

class SmallProducts {
 public:
  SmallProducts(const Gemm& g, const GemmPlan& plan, const KernelSet& kernels)
      : g_(g), plan_(plan), kernels_(kernels), tiles_(kernels.strided[0][vectors(plan)]) {
    if (g.math != Math::F32) return;  // packing would round the operands
    by_rows_ = g.b.dtype == DType::Float32 && g.b.col_stride == 1 && g.b.row_stride >= 0;
    last_row_ = (g.shape.k - 1) * g.b.row_stride;
    end_ = batch_offset(g.b, g.shape.batch - 1) + last_row_ + g.shape.n;
    in_place_columns_ = vectors(plan) * plan.lanes;
    const bool small = g.a.dtype == DType::Float32 && g.shape.k <= std::ssize(steps_) &&
                       std::abs(g.a.col_stride) <= kLongestStep;
    if (!small || vectors(plan) > kMaxWindowVectors) return;
    window_ = kernels.window[0][vectors(plan)][kProductRows][1];
    for (std::int64_t k = 0; k < g.shape.k; ++k)
      steps_[at(k)] = static_cast<std::int32_t>(k * g.a.col_stride);
  }

  void run(float* memory) const {
    const GemmShape& shape = g_.shape;
    const std::int64_t floats = plan_.packed_a() + plan_.packed_b() + plan_.scratch();
    const std::int64_t each = std::max<std::int64_t>(1, kTilesWork / (shape.m * shape.n * shape.k));
    parallel_for(divide_up(shape.batch, each), [&](std::int64_t chunk, int worker) {
      const std::int64_t last = std::min(shape.batch, (chunk + 1) * each);
      float* const a = memory + worker * floats;
      TileArgs args;
      args.steps = shape.k;
      args.a_step = plan_.mr, args.a_row = g_.a.row_stride;
      args.table = steps_.data();
      args.cols = shape.n;
      args.ldc = g_.c != nullptr ? g_.ldc : shape.n;
      args.ahead_a = args.ahead_b = {reinterpret_cast<const char*>(a), 0, 0};
      for (std::int64_t i = chunk * each; i < last; ++i) multiply(i, worker, a, args);
    });
  }

 private:
  static std::int64_t vectors(const GemmPlan& plan) {
    const std::int64_t needed = divide_up(plan.n, plan.lanes);
    return needed > 2 ? 4 : needed;
  }

  void multiply(std::int64_t batch, int worker, float* a, TileArgs& args) const {
    const GemmShape& shape = g_.shape;
    float *const b = a + plan_.packed_a(), *const scratch = b + plan_.packed_b();
    float* const c = g_.c != nullptr ? g_.c + batch * g_.c_batch_stride : scratch;
    reach_b(batch, b, args);
    const std::int64_t from = batch_offset(g_.a, batch);
    std::int64_t row = 0;
    for (; window_ != nullptr && row + kProductRows <= shape.m; row += kProductRows) {
      args.a = static_cast<const float*>(g_.a.data) + from + row * g_.a.row_stride;
      args.c = c + row * args.ldc;
      window_(args);
    }
    args.a = a;
    for (; row < shape.m; row += plan_.mr) {
      const auto rows = static_cast<int>(std::min<std::int64_t>(plan_.mr, shape.m - row));
      pack_panel(kernels_,
                 {element(g_.a.data, g_.a.dtype, from + row * g_.a.row_stride), g_.a.dtype,
                  g_.a.row_stride, g_.a.col_stride},
                 rows, shape.k, g_.math, a, plan_.mr);
      args.c = c + row * args.ldc;
      tiles_[rows](args);
    }
    if (g_.epilogue.fn != nullptr)
      g_.epilogue.fn(g_.epilogue.ctx, {worker, {batch, 0, shape.m, 0, shape.n}, c, args.ldc});
  }

  // A row of B may be read past its end, up to the end of the last matrix: the tile stores none of
  // the columns beyond n.
  void reach_b(std::int64_t batch, float* packed, TileArgs& args) const {
    const std::int64_t offset = batch_offset(g_.b, batch);
    const void* from = element(g_.b.data, g_.b.dtype, offset);
    if (by_rows_ && offset + last_row_ + in_place_columns_ <= end_) {
      args.b = static_cast<const float*>(from), args.b_step = g_.b.row_stride;
      return;
    }
    pack_panel(kernels_, {from, g_.b.dtype, g_.b.col_stride, g_.b.row_stride},
               static_cast<int>(g_.shape.n), g_.shape.k, g_.math, packed, plan_.nr);
    args.b = packed, args.b_step = plan_.nr;
  }

  static constexpr std::int64_t kLongestStep = 1'000'000;  // 256 of them fit in 32 bits

  const Gemm& g_;
  const GemmPlan& plan_;
  const KernelSet& kernels_;
  const TileFn* const tiles_;
  TileFn window_ = nullptr;
  std::array<std::int32_t, 256> steps_{};  // from the first element of a row of A
  bool by_rows_ = false;
  std::int64_t last_row_ = 0, end_ = 0, in_place_columns_ = 0;
};

}  // namespace

bool is_few_tiles(const GemmPlan& plan) {
  return plan.cut == GemmCut::Batch && !plan.pairs && !plan.blocks &&
         plan.m <= plan.chunk_m * plan.mr && plan.n <= plan.nr &&
         plan.k <= std::min(plan.kb, plan.kc);
}

void gemm_few_tiles(const Gemm& product, const GemmPlan& plan, const KernelSet& kernels,
                    float* memory) {
  SmallProducts(product, plan, kernels).run(memory);
}

}  // namespace tenon::cpu

// Chooses the sizes of blocks and chunks for the caches of CpuModel.
#include "cpu/kernels/gemm/gemm_plan.h"
#include "base/index.h"
#include "device/cpu_model.h"

#include <algorithm>

namespace tenon::cpu {
namespace {

constexpr std::int64_t kMaxKb = 2048;  // elements of the reduction packed at once
constexpr std::int64_t kBlockA = 2 * kCpu.last_floats();  // most floats of packed A
constexpr std::int64_t kBlockB = 2 * kCpu.last_floats();
constexpr std::int64_t kKeptA = 6 * kCpu.last_floats();  // most floats of packed A that is kept
constexpr std::int64_t kPanelBytes = kCpu.first_cache;   // most bytes of a panel of B
constexpr std::int64_t kBlockPanelBytes = kCpu.second_cache / 8;  // the same for block tiles
constexpr std::int64_t kChunkRows = 112;                          // most rows of a chunk
constexpr std::int64_t kStreamedRows = 256;                       // most rows of A if B is streamed
constexpr std::int64_t kStreamedB = kCpu.last_floats();  // least floats of a B that is streamed

// Splits `count` into even parts of at most `most`; returns the size of a part.
std::int64_t even_part(std::int64_t count, std::int64_t most) {
  return divide_up(count, divide_up(count, most));
}

// Few rows leave registers for wider tiles; few columns need only one vector.
int vectors_of(std::int64_t m, std::int64_t n, const KernelSet& kernels) {
  if (n <= kernels.lanes) return 1;
  return m <= kernels.max_mr[4] && n > 2 * kernels.lanes ? 4 : 2;
}

void choose_tile(GemmPlan& plan, const KernelSet& kernels) {
  plan.blocks = plan.pairs && kernels.block_tile != nullptr;
  if (plan.blocks) {
    plan.lanes = kernels.lanes;
    plan.mr = plan.nr = kBlockEdge;
    return;
  }
  const int nv = vectors_of(plan.m, plan.n, kernels);
  plan.lanes = kernels.lanes;
  plan.nr = nv * kernels.lanes;
  const std::int64_t panels = divide_up(plan.m, kernels.max_mr[nv]);
  plan.mr = static_cast<int>(divide_up(plan.m, panels));
}

void choose_blocks(GemmPlan& plan) {
  plan.kb = round_up(divide_up(plan.k, divide_up(plan.k, kMaxKb)), 2);
  const std::int64_t words = plan.words(plan.kb);
  const std::int64_t longest = (plan.blocks ? kBlockPanelBytes : kPanelBytes) / (4 * plan.nr);
  plan.kc = divide_up(words, divide_up(words, longest));
  if (plan.blocks) plan.kc = round_up(plan.kc, kBlockWords);
  const auto cut = [words](std::int64_t size, std::int64_t panel, std::int64_t floats) {
    const std::int64_t most = std::max(panel, floats / words / panel * panel);
    return std::min(round_up(size, panel), round_up(divide_up(size, divide_up(size, most)), panel));
  };
  plan.mb = cut(plan.m, plan.mr, kBlockA);
  plan.nb = cut(plan.n, plan.nr, kBlockB);
}

// Starts with chunks whose result and stretch of A together fill half of the L2 cache. Neither the
// last chunk nor a core that others slow down then delays the rest for long. Halves the chunks
// while that gives work to more threads.
void choose_chunks(GemmPlan& plan) {
  const std::int64_t rows = divide_up(plan.mb, plan.mr), cols = divide_up(plan.nb, plan.nr);
  plan.chunk_m = even_part(rows, (plan.blocks ? 8 * kBlockEdge : kChunkRows) / plan.mr);
  plan.chunk_n = even_part(cols, 8);
  const auto chunks = [&] { return divide_up(rows, plan.chunk_m) * divide_up(cols, plan.chunk_n); };
  const auto work = [&] {
    return static_cast<double>(plan.chunk_m * plan.mr) *
           static_cast<double>(plan.chunk_n * plan.nr) * static_cast<double>(plan.kb);
  };
  while (chunks() < kCpu.many_chunks && work() > 2 * kCpu.chunk_multiply_adds &&
         (plan.chunk_m > 1 || plan.chunk_n > 1)) {
    if (plan.chunk_n * plan.nr >= plan.chunk_m * plan.mr && plan.chunk_n > 1) {
      plan.chunk_n = divide_up(plan.chunk_n, 2);
    } else {
      plan.chunk_m = divide_up(plan.chunk_m, 2);
    }
  }
}

// Gives every chunk all rows and an even share of the columns: B is read once, by the chunk that
// packs it. If B is contiguous along its rows, the shares would be pieces of one page each whose
// neighbours belong to other chunks.
void choose_streams(GemmPlan& plan, BAlong b) {
  if (plan.cut != GemmCut::Blocks || plan.blocks || b != BAlong::Reduction) return;
  plan.b_streamed = plan.m <= kStreamedRows && plan.n * plan.k >= kStreamedB;
  if (!plan.b_streamed) return;
  plan.nb = round_up(plan.n, plan.nr);
  plan.chunk_m = divide_up(plan.mb, plan.mr);
  plan.chunk_n = even_part(plan.nb / plan.nr,
                           std::max<std::int64_t>(1, plan.nb / plan.nr / (2 * kCpu.many_chunks)));
}

}  // namespace

std::int64_t GemmPlan::packed_a() const {
  return round_up(a_kept ? packed_a_at(0, k_blocks() * kb) : mb * words(kb), 16);
}

std::int64_t GemmPlan::packed_a_at(std::int64_t row0, std::int64_t k0) const {
  return a_kept ? (k0 / kb * round_up(m, mr) + row0) * words(kb) : 0;
}

std::int64_t GemmPlan::packed_b() const {
  if (b_streamed) return 0;
  const std::int64_t cols = b_in_place ? nr : nb;
  return round_up(cols * words(kb), 16);
}

std::int64_t GemmPlan::scratch() const {
  return round_up(chunk_scratch() ? chunk_m * mr * chunk_n * nr : m * n, 16);
}

std::int64_t GemmPlan::partial_sums() const {
  if (b_streamed) return round_up(chunk_m * mr * nr, 16) + round_up(kc * nr, 16);
  return words(kb) > kc && !blocks ? round_up(chunk_m * mr * chunk_n * nr, 16) : 0;
}

const KernelSet& gemm_kernels(const GemmShape& shape, Math math) {
  const KernelSet* blocks = math == Math::Bf16 ? block_kernel_set() : nullptr;
  const bool large = shape.m >= 16 && shape.n >= 16 && shape.k >= 32;
  return blocks != nullptr && large ? *blocks : kernel_set();
}

GemmPlan plan_gemm(const GemmShape& shape, Math math, const KernelSet& kernels, BAlong b) {
  GemmPlan plan;
  plan.kernels = &kernels;
  plan.pairs = kernels.pairs && math == Math::Bf16;
  plan.m = shape.m;
  plan.n = shape.n;
  plan.k = shape.k;
  choose_tile(plan, kernels);
  plan.b_in_place = b == BAlong::Rows && math == Math::F32 && shape.m <= 2 * plan.mr;
  const double work =
      static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  if (shape.batch > 1 &&
      (shape.batch >= kCpu.many_chunks || work < kCpu.many_chunks * kCpu.chunk_multiply_adds)) {
    plan.cut = GemmCut::Batch;
  } else if (shape.batch == 1 && shape.k >= 1024 && shape.m * shape.n <= 128 * 128 &&
             work > 4 * kCpu.chunk_multiply_adds) {
    plan.cut = GemmCut::SplitK;
    plan.parts = std::min<std::int64_t>(16, shape.k / 256);
    plan.k = round_up(divide_up(shape.k, plan.parts), 2);
    plan.parts = divide_up(shape.k, plan.k);
  }
  choose_blocks(plan);
  plan.a_kept = plan.cut == GemmCut::Blocks && plan.nb < plan.n &&
                round_up(plan.m, plan.mr) * plan.words(plan.kb) * plan.k_blocks() <= kKeptA;
  choose_chunks(plan);
  choose_streams(plan, b);
  return plan;
}

}  // namespace tenon::cpu

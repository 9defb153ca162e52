// Random map programs on a GPU (or the emulated one) against the reference engine: views, dtypes,
// rows, columns, in any combination.
#include <doctest/doctest.h>

#include <random>

#include "cuda/engines/maps/map_engine.h"
#include "device_check.h"

using namespace tenon;
using test::DeviceCheck;

namespace {

class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {}

  DeviceCheck make() {
    DeviceCheck t;
    t.region.title = "random";
    const int rank = pick(1, 4);
    for (int d = 0; d < rank; ++d) t.region.map.space.push_back(size());
    // One axis long enough for chunks and for rows of a whole block.
    if (rank <= 2 && pick(0, 3) == 0) t.region.map.space[pick(0, rank - 1)] = pick(1000, 9000);
    t.region.map.has_rows = pick(0, 1) == 1;
    const int loads = pick(1, 4), computes = pick(1, 8);
    for (int k = 0; k < loads; ++k) results_.push_back(load(t));
    for (int k = 0; k < computes; ++k) results_.push_back(compute(t));
    const int stores = pick(1, 3);
    for (int k = 0; k < stores; ++k) store(t, any());
    if (pick(0, 2) == 0) column(t);
    return t;
  }

 private:
  int pick(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }
  std::int64_t size() {
    constexpr std::int64_t sizes[] = {1, 2, 3, 4, 5, 8, 16, 17, 33, 64};
    return sizes[pick(0, 9)];
  }
  DType dtype() { return static_cast<DType>(pick(0, kDTypeCount - 1)); }
  int any() {
    return results_[static_cast<std::size_t>(pick(0, static_cast<int>(results_.size()) - 1))];
  }
  static const MapInstr& instr(const DeviceCheck& t, int i) {
    return t.region.map.instrs[static_cast<std::size_t>(i)];
  }

  /// A view of a fresh value: contiguous, broadcast along some axes, permuted, flipped or with
  /// gaps.
  View view(const Shape& space, std::int64_t* elements, bool may_broadcast) {
    View v;
    std::vector<int> order;
    for (int d = 0; d < space.rank(); ++d) order.push_back(d);
    if (pick(0, 3) == 0) std::shuffle(order.begin(), order.end(), random_);
    std::int64_t stride = pick(0, 3) == 0 ? 2 : 1, reach = 0;
    for (std::size_t k = order.size(); k-- > 0;) {
      const int d = order[k];
      if (may_broadcast && pick(0, 3) == 0) continue;
      const bool flipped = pick(0, 7) == 0;
      v.stride[d] = flipped ? -stride : stride;
      if (flipped) v.offset += stride * (space[d] - 1);
      reach += stride * (space[d] - 1);
      stride *= space[d];
      if (pick(0, 7) == 0) ++stride;
    }
    const int shift = pick(0, 4) == 0 ? pick(1, 5) : 0;
    v.offset += shift;
    *elements = reach + 1 + shift;
    return v;
  }

  Shape rows_of(const DeviceCheck& t) {
    Shape rows = t.region.map.space;
    rows[rows.rank() - 1] = 1;
    return rows;
  }

  int load(DeviceCheck& t) {
    const bool per_row = t.region.map.has_rows && pick(0, 3) == 0;
    std::int64_t elements = 0;
    const View v = view(per_row ? rows_of(t) : t.region.map.space, &elements, true);
    const int i = t.load(t.leaf(dtype(), {elements}, 1, 4), &v, per_row);
    return i;
  }

  int as(DeviceCheck& t, int i, DType to) {
    return instr(t, i).dtype == to ? i : t.compute(Op::Cast, to, i);
  }

  int compute(DeviceCheck& t) {
    const int a = any();
    const DType type = instr(t, a).dtype;
    if (t.region.map.has_rows && !is_bool(type) && pick(0, 3) == 0) {
      constexpr Op ops[] = {Op::Sum, Op::Max, Op::Min, Op::ArgMax, Op::ArgMin};
      const Op op = ops[pick(0, 4)];
      if (op == Op::ArgMax || op == Op::ArgMin) return t.row_reduce(op, a, DType::Int64);
      const bool sum = op == Op::Sum;
      return t.row_reduce(op, a, sum && !is_floating(type) ? DType::Int64 : type);
    }
    switch (pick(0, 5)) {
      case 0:
        return t.compute(Op::Cast, dtype(), a);
      case 1:
        return t.compute(Op::Square, arithmetic(t, a), as(t, a, arithmetic(t, a)));
      case 2: {
        const int b = as(t, any(), type);
        return t.compute(Op::Lt, DType::Bool, a, b);
      }
      case 3: {
        const int condition = as(t, any(), DType::Bool), b = as(t, any(), type);
        return t.compute(Op::Where, type, condition, a, b);
      }
      case 4:
        return t.compute(Op::Tanh, DType::Float32, as(t, a, DType::Float32));
      default: {
        const DType common = arithmetic(t, a);
        constexpr Op ops[] = {Op::Add, Op::Sub, Op::Mul, Op::Maximum, Op::Minimum};
        const int left = as(t, a, common), right = as(t, any(), common);
        return t.compute(ops[pick(0, 4)], common, left, right);
      }
    }
  }
  /// The instruction's dtype, or one that can be computed with.
  static DType arithmetic(const DeviceCheck& t, int i) {
    return is_bool(instr(t, i).dtype) ? DType::Int32 : instr(t, i).dtype;
  }

  void store(DeviceCheck& t, int source) {
    const bool per_row = instr(t, source).per_row;
    std::int64_t elements = 0;
    const View v = view(per_row ? rows_of(t) : t.region.map.space, &elements, false);
    t.store_to(source, v, t.output(instr(t, source).dtype, {elements}));
  }

  void column(DeviceCheck& t) {
    const int source = any();
    const DType type = instr(t, source).dtype;
    const auto axes = static_cast<std::uint32_t>(pick(0, (1 << t.region.map.space.rank()) - 1));
    const DType result = is_floating(type) ? type : DType::Int64;
    t.reduce(source, pick(0, 2) == 0 && !is_bool(type) ? Op::Max : Op::Sum, axes, result);
    if (pick(0, 1) == 0) t.reduce(as(t, any(), DType::Float32), Op::Sum, axes, DType::Float32);
  }

  std::mt19937 random_;
  std::vector<int> results_;
};

}  // namespace

TEST_CASE("cuda map: random programs") {
  if (!DeviceCheck::can_run()) return;
  const char* count = std::getenv("TENON_FUZZ_PROGRAMS");
  const unsigned programs = count != nullptr ? static_cast<unsigned>(std::atoi(count)) : 40;
  const char* first = std::getenv("TENON_FUZZ_FIRST");
  const unsigned start = first != nullptr ? static_cast<unsigned>(std::atoi(first)) : 0;
  for (unsigned seed = start; seed < start + programs; ++seed) {
    CAPTURE(seed);
    DeviceCheck t = RandomProgram(seed).make();
    const cuda::Target target = cuda::target_of(0);
    const Engine& engine = cuda::map_engine(target);
    CAPTURE(engine.prepare(t.region, t.values, 1)->source());
    t.check_device(engine, 2e-5);
  }
}

// The chain engine: runs what other engines prepared for a slice, slice by slice, each worker with
// a slice of its own.
//
// Each worker has scratch memory in the workspace for the slice at hand: the table of pointers that
// kernels are bound to, the values that nobody else sees, and the kernels' own workspace. A weight
// gradient leaves a sum for each slice; they are added in the order of the slices, and its epilogue
// runs on the total. Slices are cut by shape alone, so any number of threads gives the same bits.
#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/index.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "cpu/cpu.h"
#include "cpu/engines/workspace.h"
#include "plan/merge/chain.h"

namespace tenon::cpu {

namespace {

using Engines = std::span<const Engine* const>;

bool sums_slices(const Region& part) {
  return part.kind == RegionKind::Contraction && part.contraction.op == Op::Conv2dWeightGrad;
}

/// A weight gradient's slice: its bare sum, as the value `partial`.
Region without_epilogue(Region part, ValueId partial) {
  part.contraction.has_epilogue = false;
  part.contraction.out = partial;
  part.map = MapProgram();
  return part;
}

/// What follows the sum over all slices, which stands in the value `partial`: the weight gradient's
/// epilogue, and its result where it has a place.
Region finish_of(const Region& part, ValueId partial) {
  const Contraction& c = part.contraction;
  const Shape& o = c.out_shape;
  Region finish;
  finish.kind = RegionKind::Map;
  finish.label = part.label;
  if (c.has_epilogue) finish.map = part.map;
  finish.map.space = {1, o[0], o[1] * o[2] * o[3]};
  View total;
  total.value = partial;
  total.stride[2] = 1;
  total.stride[1] = finish.map.space[2];
  total.stride[0] = finish.map.space[1] * total.stride[1];
  for (MapInstr& instr : finish.map.instrs) {
    if (instr.code != MapCode::Accumulator) continue;
    instr.code = MapCode::Load;
    instr.view = total;
  }
  if (c.out == kNoValue) return finish;
  MapInstr load;
  load.code = MapCode::Load;
  load.dtype = c.dtype;
  load.view = total;
  finish.map.instrs.push_back(load);
  total.value = c.out;
  finish.map.stores.push_back({static_cast<int>(finish.map.instrs.size()) - 1, total});
  return finish;
}

class ChainKernel final : public Kernel {
 public:
  ChainKernel(const Region& chain, std::span<const Value> values, int threads, Engines engines)
      : samples_(chain.samples), slice_(chain.slice), values_(values.size()) {
    const auto partial = static_cast<ValueId>(values.size());
    std::vector<Value> own(values.begin(), values.end());
    const Region& last = chain.parts.back();
    if (sums_slices(last)) {
      sums_ = last.contraction.out_shape.numel();
      own.push_back({.dtype = DType::Float32, .shape = last.contraction.out_shape});
      const Region finish = finish_of(last, partial);
      finish_ = first_that_claims(engines, finish, own)->prepare(finish, own, threads);
    }
    std::size_t kernels = 0;
    for (Region part : chain.parts) {
      if (sums_slices(part)) part = without_epilogue(std::move(part), partial);
      std::vector<ChainAccess> accesses;
      list_accesses(part, own, samples_, accesses);
      for (const ChainAccess& access : accesses) bind(access, chain.local);
      stages_.push_back(
          {prepared(part, own, slice_, engines), prepared(part, own, samples_ % slice_, engines)});
      for (const auto& kernel : {stages_.back().whole.get(), stages_.back().rest.get()})
        if (kernel != nullptr) kernels = std::max(kernels, kernel->workspace_bytes);
    }
    kernels_offset_ = lay_out_locals();
    scratch_bytes_ = kernels_offset_ + whole_lines(kernels);
    partial_bytes_ = whole_lines(at(sums_) * sizeof(float));
    workers_ = std::min<std::int64_t>(threads, slices());
    partials_offset_ = scratch_bytes_ * at(workers_);
    finish_offset_ = partials_offset_ + partial_bytes_ * at(slices());
    workspace_bytes = finish_offset_ + (finish_ == nullptr ? 0 : finish_->workspace_bytes);
  }

  void run(const Binding& binding) const override {
    std::atomic<std::int64_t> next = 0;
    parallel_for(workers_, [&](std::int64_t worker, int) {
      const OnlyThread only;
      for (std::int64_t slice; (slice = next.fetch_add(1, std::memory_order_relaxed)) < slices();)
        run_slice(binding, slice, binding.workspace + scratch_bytes_ * at(worker));
    });
    if (finish_ != nullptr) finish(binding);
  }

 private:
  /// One part, for a slice and for the smaller last one.
  struct Stage {
    std::unique_ptr<Kernel> whole, rest;
  };
  /// Where a slice finds a value: `sample_bytes` further for each sample before it, or, of a local
  /// one, at `offset` of the scratch.
  struct Place {
    ValueId value = kNoValue;
    std::int64_t sample_bytes = 0;
    bool local = false;
    std::size_t offset = 0;
  };

  std::int64_t slices() const { return (samples_ + slice_ - 1) / slice_; }

  static std::unique_ptr<Kernel> prepared(const Region& part, std::vector<Value> values,
                                          std::int64_t samples, Engines engines) {
    if (samples == 0) return nullptr;
    const Region narrow = narrowed(part, samples, values);
    return first_that_claims(engines, narrow, values)->prepare(narrow, values, 1);
  }

  void bind(const ChainAccess& access, const std::vector<ValueId>& local) {
    const bool known = std::any_of(places_.begin(), places_.end(),
                                   [&](const Place& p) { return p.value == access.value; });
    const bool is_local = std::find(local.begin(), local.end(), access.value) != local.end();
    if (!known) places_.push_back({access.value, access.sample_bytes, is_local, 0});
  }

  /// Local values behind the table of pointers; gives where they end.
  std::size_t lay_out_locals() {
    std::size_t top = whole_lines((values_ + 1) * sizeof(std::byte*));
    for (Place& place : places_) {
      if (!place.local) continue;
      place.offset = top;
      top += whole_lines(at(place.sample_bytes * slice_));
    }
    return top;
  }

  void run_slice(const Binding& binding, std::int64_t slice, std::byte* mine) const {
    auto** table = reinterpret_cast<std::byte**>(mine);
    const std::int64_t first = slice * slice_;
    for (const Place& place : places_)
      table[place.value] = place.local ? mine + place.offset
                                       : binding.values[place.value] + first * place.sample_bytes;
    table[values_] = binding.workspace + partials_offset_ + partial_bytes_ * at(slice);
    const bool whole = first + slice_ <= samples_;
    for (const Stage& stage : stages_)
      (whole ? stage.whole : stage.rest)->run({table, mine + kernels_offset_, nullptr});
  }

  void finish(const Binding& binding) const {
    std::byte* const partials = binding.workspace + partials_offset_;
    constexpr std::int64_t kBlock = 4096;
    parallel_for((sums_ + kBlock - 1) / kBlock, [&](std::int64_t block, int) {
      auto* total = reinterpret_cast<float*>(partials);
      const std::int64_t first = block * kBlock, last = std::min(sums_, first + kBlock);
      for (std::int64_t slice = 1; slice < slices(); ++slice) {
        const auto* more = reinterpret_cast<const float*>(partials + partial_bytes_ * at(slice));
        for (std::int64_t i = first; i < last; ++i) total[i] += more[i];
      }
    });
    auto** table = reinterpret_cast<std::byte**>(binding.workspace);
    std::copy_n(binding.values, values_, table);
    table[values_] = partials;
    finish_->run({table, binding.workspace + finish_offset_, nullptr});
  }

  const std::int64_t samples_, slice_;
  const std::size_t values_;  // of the program; the table has one more, a slice's sum
  std::vector<Stage> stages_;
  std::vector<Place> places_;
  std::int64_t sums_ = 0;  // floats of a slice's sum
  std::unique_ptr<Kernel> finish_;
  std::int64_t workers_ = 1;
  std::size_t kernels_offset_ = 0, scratch_bytes_ = 0;  // in and of a worker's scratch
  std::size_t partials_offset_ = 0, partial_bytes_ = 0, finish_offset_ = 0;
};

class ChainEngine final : public Engine {
 public:
  explicit ChainEngine(Engines engines) : engines_(engines) {}

  const char* name() const override { return "chain"; }
  Capabilities capabilities(const Region&, std::span<const Value>) const override {
    Capabilities can;
    can.no_slices = nullptr;
    return can;
  }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    *why = "it is no chain";
    if (region.kind != RegionKind::Chain) return false;
    std::vector<ChainAccess> accesses;
    for (const Region& part : region.parts) {
      const char* reason =
          refusal(part, &part == &region.parts.back(), region.samples, values, accesses);
      if (reason == nullptr) continue;
      *why = cat(part.title, " ", reason);
      return false;
    }
    return true;
  }

  std::unique_ptr<Kernel> prepare(const Region& region, std::span<const Value> values,
                                  int threads) const override {
    return std::make_unique<ChainKernel>(region, values, threads, engines_);
  }

 private:
  const char* refusal(const Region& part, bool last, std::int64_t samples,
                      std::span<const Value> values, std::vector<ChainAccess>& accesses) const {
    if (const char* why = list_accesses(part, values, samples, accesses)) return why;
    if (first_that_claims(engines_, part, values) == nullptr) return "has no fast kernel";
    if (!sums_slices(part)) return nullptr;
    if (!last) return "sums over slices before the chain's end";
    const Region finish = finish_of(part, static_cast<ValueId>(values.size()));
    return first_that_claims(engines_, finish, values) == nullptr
               ? "has an epilogue that cannot follow the sum"
               : nullptr;
  }

  const Engines engines_;
};

}  // namespace

std::unique_ptr<const Engine> chain_engine(Engines engines) {
  return std::make_unique<ChainEngine>(engines);
}

}  // namespace tenon::cpu

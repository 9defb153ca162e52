// The chain engine: runs kernels that other engines prepared for a slice, slice by slice. Each
// worker has a slice of its own.
//
// Each worker has scratch memory in the workspace: the table of pointers that kernels are bound to,
// the values that nothing outside the chain reads, and the kernels' own workspace. A part that sums
// over slices stores one sum per slice. The sums are added in the order of the slices, and the
// part's epilogue runs on the total. Slices are cut by shape alone, so the number of threads does
// not change the bits.
#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/contains.h"
#include "base/index.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "cpu/cpu.h"
#include "cpu/engines/run/chain_bands.h"
#include "cpu/engines/run/workspace.h"
#include "plan/merge/slices.h"
#include "plan/regions/groups.h"

namespace tenon::cpu {

namespace {

using Engines = std::span<const Engine* const>;

/// One slice of a part that sums over slices: its sum without epilogue, as the value `partial`.
Region without_epilogue(Region part, ValueId partial) {
  part.contraction.has_epilogue = false;
  part.contraction.out = partial;
  part.map = MapProgram();
  return part;
}

/// The work after the sum over all slices, which is in the value `partial`: the epilogue, and the
/// result itself if it is stored.
Region finish_of(const Region& part, ValueId partial) {
  const Contraction& c = part.contraction;
  Region finish;
  finish.kind = RegionKind::Map;
  finish.label = part.label;
  if (c.has_epilogue) finish.map = part.map;
  finish.map.space = epilogue_space(c.op, c.out_shape, c.channels_last);
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
    own.emplace_back();  // `partial`: float32
    std::vector<ChainAccess> accesses;
    std::size_t kernels = 0;
    for (Region part : chain.parts) {
      const Engine& engine = *first_that_claims(engines, part, own);
      const Capabilities can = engine.capabilities(part, own);
      list_accesses(part, can, own, samples_, accesses);
      if (can.sums_slices) {
        own[at(partial)].shape = part.contraction.out_shape;
        sums_ = part.contraction.out_shape.numel();
        const Region finish = finish_of(part, partial);
        finish_ = first_that_claims(engines, finish, own)->prepare(finish, own, threads);
        part = without_epilogue(std::move(part), partial);
      }
      const auto prepared = [&](std::int64_t count) -> std::unique_ptr<Kernel> {
        if (count == 0) return nullptr;
        std::vector<Value> shapes = own;
        const Region slice = sliced(part, can, chain, count, shapes);
        return first_that_claims(engines, slice, shapes)->prepare(slice, shapes, 1);
      };
      stages_.push_back({prepared(slice_), prepared(samples_ % slice_)});
      for (const auto& kernel : {stages_.back().whole.get(), stages_.back().rest.get()})
        if (kernel != nullptr) kernels = std::max(kernels, kernel->workspace_bytes);
    }
    for (const ChainAccess& access : accesses)
      places_.push_back({access.value, access.step, contains(chain.local, access.value), 0,
                         at(access.places * access.step * slice_)});
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
  /// One part, for full slices and for the smaller last slice.
  struct Stage {
    std::unique_ptr<Kernel> whole, rest;
  };
  /// The address of a value for a slice: `step` bytes per entry before the slice; for a local
  /// value, `offset` in the scratch.
  struct Place {
    ValueId value = kNoValue;
    std::int64_t step = 0;
    bool local = false;
    std::size_t offset = 0, bytes = 0;
  };

  std::int64_t slices() const { return (samples_ + slice_ - 1) / slice_; }

  /// Places local values behind the table of pointers; returns their end.
  std::size_t lay_out_locals() {
    std::size_t top = whole_lines((values_ + 1) * sizeof(std::byte*));
    for (Place& place : places_) {
      if (!place.local) continue;
      place.offset = top;
      top += whole_lines(place.bytes);
    }
    return top;
  }

  void run_slice(const Binding& binding, std::int64_t slice, std::byte* mine) const {
    auto** table = reinterpret_cast<std::byte**>(mine);
    const std::int64_t first = slice * slice_;
    for (const Place& place : places_)
      table[place.value] =
          place.local ? mine + place.offset : binding.values[place.value] + first * place.step;
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
    can.runs_chains = true;
    return can;
  }

  bool claims(const Region& region, std::span<const Value> values,
              std::string* why) const override {
    *why = "runs chains of regions only";
    if (region.kind != RegionKind::Chain) return false;
    if (region.band > 0) {
      const Region* part = nullptr;
      const char* reason = band_refusal(region, values, engines_, &part);
      if (reason != nullptr) *why = cat(part->title, " ", reason);
      return reason == nullptr;
    }
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
    if (region.band > 0) return prepare_bands(region, values, threads, engines_);
    return std::make_unique<ChainKernel>(region, values, threads, engines_);
  }

 private:
  const char* refusal(const Region& part, bool last, std::int64_t samples,
                      std::span<const Value> values, std::vector<ChainAccess>& accesses) const {
    const Engine* engine = first_that_claims(engines_, part, values);
    if (engine == nullptr) return "runs on no engine that can compute it piece by piece";
    const Capabilities can = engine->capabilities(part, values);
    if (const char* why = list_accesses(part, can, values, samples, accesses)) return why;
    if (!can.sums_slices) return nullptr;
    if (!last) return "sums over the slices, so it can only end a chain";
    const Region finish = finish_of(part, static_cast<ValueId>(values.size()));
    return first_that_claims(engines_, finish, values) == nullptr
               ? "has an epilogue that no engine runs after the sum over the slices"
               : nullptr;
  }

  const Engines engines_;
};

}  // namespace

std::unique_ptr<const Engine> chain_engine(Engines engines) {
  return std::make_unique<ChainEngine>(engines);
}

}  // namespace tenon::cpu

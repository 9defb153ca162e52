// Which steps form a chain is a question of bytes: what need not cross memory any more against what
// each slice does again.
#include "plan/merge/chain.h"

#include <algorithm>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "ops/table.h"
#include "plan/lower.h"
#include "plan/merge/merge.h"

namespace tenon {
namespace {

// Less than this stays in cache from step to step anyway.
constexpr std::int64_t kLeastBytes = std::int64_t{4} << 20;
// Of what a slice hands on: what stays in a second-level cache of 1 MiB beside the operands.
constexpr std::int64_t kSliceBytes = std::int64_t{1} << 20;
// Slices, so that threads have work to share. Their number depends on shapes alone, and so do the
// bits.
constexpr std::int64_t kLeastSlices = 16;
// Each slice packs the filters anew, at a fraction of the speed of what it saves.
constexpr std::int64_t kFilterCost = 4;
// Multiply-adds of an element that cost less than writing and reading it.
constexpr std::int64_t kMostTaps = 32;

bool is_pooling(const Region& r) {
  return r.kind == RegionKind::Opaque && op_info(r.opaque.op).kind == OpKind::Pooling;
}
bool is_conv(const Region& r, Op op) {
  return r.kind == RegionKind::Contraction && r.contraction.op == op;
}

// Of values or of steps.
bool has(const std::vector<int>& list, int number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

class Accesses {
 public:
  Accesses(std::span<const Value> values, std::int64_t samples, std::vector<ChainAccess>& out)
      : values_(values), samples_(samples), out_(out) {}

  const char* add(ValueId id, std::int64_t sample_bytes) {
    for (const ChainAccess& known : out_)
      if (known.value == id)
        return known.sample_bytes == sample_bytes ? nullptr : "reads a value in two ways";
    out_.push_back({id, sample_bytes});
    return nullptr;
  }

  /// A tensor of which each sample is an entry of the first axis.
  const char* by_sample(ValueId id, const Shape& shape) {
    const Value& value = values_[at(id)];
    if (value.dtype != DType::Float32) return "is not float32 throughout";
    if (shape.numel() == 0) return "is empty";
    if (shape.rank() == 0 || shape[0] != samples_ || shape.numel() != value.shape.numel())
      return "has other samples";
    return add(id, shape.numel() / samples_ * 4);
  }

  const char* operand(const View& view, const Shape& shape, bool sampled) {
    if (!is_contiguous(view, shape)) return "reads an operand that is not contiguous";
    return sampled ? by_sample(view.value, shape) : add(view.value, 0);
  }

  /// An epilogue's load or store.
  const char* view(const View& view) {
    const Value& value = values_[at(view.value)];
    const std::int64_t stride = view.stride[0];
    if (stride == 0) return add(view.value, 0);
    if (view.offset < 0 || view.offset >= stride || value.shape.numel() != samples_ * stride)
      return "has an epilogue that reads samples in another order";
    return add(view.value, stride * static_cast<std::int64_t>(item_size(value.dtype)));
  }

 private:
  std::span<const Value> values_;
  const std::int64_t samples_;
  std::vector<ChainAccess>& out_;
};

const char* list_epilogue(const MapProgram& map, std::int64_t samples, Accesses& accesses) {
  if (!map.reduces.empty()) return "has an epilogue that sums over samples";
  if (map.space[0] != samples) return "has an epilogue over other samples";
  for (const MapInstr& instr : map.instrs) {
    if (instr.code == MapCode::Random || instr.code == MapCode::Affine)
      return "has an epilogue that counts elements";
    if (instr.code != MapCode::Load) continue;
    if (const char* why = accesses.view(instr.view)) return why;
  }
  for (const MapStore& store : map.stores) {
    if (store.view.stride[0] == 0) return "has an epilogue that writes what samples share";
    if (const char* why = accesses.view(store.view)) return why;
  }
  return nullptr;
}

const char* list_contraction(const Region& part, std::int64_t samples, Accesses& accesses) {
  const Contraction& c = part.contraction;
  if (c.op != Op::Conv2d && c.op != Op::Conv2dInputGrad && c.op != Op::Conv2dWeightGrad)
    return "is no convolution";
  if (part.has_prologue()) return "has a prologue";
  if (c.dtype != DType::Float32) return "is not float32 throughout";
  const bool sums = c.op == Op::Conv2dWeightGrad;
  const char* why = accesses.operand(c.a, c.a_shape, true);
  if (why == nullptr) why = accesses.operand(c.b, c.b_shape, sums);
  if (why != nullptr || sums) return why;
  if (c.out != kNoValue) why = accesses.by_sample(c.out, c.out_shape);
  return why == nullptr && c.has_epilogue ? list_epilogue(part.map, samples, accesses) : why;
}

const char* list_pool(const Opaque& o, std::span<const Value> values, Accesses& accesses) {
  if (op_info(o.op).kind != OpKind::Pooling) return "is no pooling";
  for (std::size_t k = 0; k < o.inputs.size(); ++k)
    if (const char* why = accesses.by_sample(o.inputs[k], o.shapes[k])) return why;
  return accesses.by_sample(o.out(), values[at(o.out())].shape);
}

}  // namespace

const char* list_accesses(const Region& part, std::span<const Value> values, std::int64_t samples,
                          std::vector<ChainAccess>& out) {
  Accesses accesses(values, samples, out);
  if (part.kind == RegionKind::Contraction) return list_contraction(part, samples, accesses);
  if (part.kind == RegionKind::Opaque) return list_pool(part.opaque, values, accesses);
  return "is neither a convolution nor a pooling";
}

Region narrowed(const Region& part, std::int64_t samples, std::span<Value> values) {
  Region narrow = part;
  if (part.kind == RegionKind::Opaque) {
    for (Shape& shape : narrow.opaque.shapes) shape[0] = samples;
    values[at(narrow.opaque.out())].shape[0] = samples;
    return narrow;
  }
  Contraction& c = narrow.contraction;
  c.a_shape[0] = samples;
  if (c.op == Op::Conv2dWeightGrad) {
    c.b_shape[0] = samples;
    return narrow;
  }
  c.out_shape[0] = samples;
  if (c.has_epilogue) narrow.map.space[0] = samples;
  return narrow;
}

namespace {

class Chainer {
 public:
  Chainer(Merger& merger, const Engine& engine)
      : m_(merger),
        engine_(engine),
        graph_(merger.times.graph()),
        chain_of_(merger.program.steps.size(), -1) {}

  void run() {
    for (int s = 0; s < m_.size(); ++s) {
      if (!is_pooling(region(s))) continue;
      behind_convolution(s);
      before_weights(s);
    }
    for (Chain& chain : chains_) find_local(chain);
    rewrite();
  }

 private:
  struct Chain {
    std::vector<int> steps;     // that it is made of
    std::vector<Region> parts;  // one more than steps where the first is computed again
    int again = -1;             // the step that is computed again
    std::int64_t samples = 0;
    std::vector<ValueId> local;  // handed on, and read by nothing else
  };

  Region& region(int step) { return m_.region(step); }
  int writer(ValueId id) const {
    const std::vector<int>& writers = m_.writers[at(id)];
    return writers.empty() ? -1 : writers[0];
  }
  const std::vector<int>& readers(ValueId id) const { return m_.readers[at(id)]; }

  void behind_convolution(int pool) {
    const Opaque& o = region(pool).opaque;
    if (m_.values()[at(o.out())].shape.numel() >= o.shapes[0].numel()) return;  // a gradient
    const int conv = writer(o.inputs[0]);
    if (conv >= 0 && is_conv(region(conv), Op::Conv2d))
      consider({{conv, pool}, {region(conv), region(pool)}, -1, o.shapes[0][0], {}});
  }

  void before_weights(int pool) {
    const Opaque& o = region(pool).opaque;
    const std::vector<int> users = readers(o.out());
    if (users.size() != 1 || m_.values()[at(o.out())].kind != Value::Kind::Arena) return;
    if (!is_conv(region(users[0]), Op::Conv2dWeightGrad)) return;
    const Chain chain{{pool, users[0]}, {region(pool), region(users[0])}, -1, o.shapes[0][0], {}};
    for (ValueId input : o.inputs) {
      const int conv = writer(input);
      if (conv < 0 || !may_compute_again(conv, chain)) continue;
      Chain longer = chain;
      longer.again = conv;
      longer.parts.insert(longer.parts.begin(), region(conv));
      if (consider(std::move(longer))) return;
    }
    consider(chain);
  }

  // Whether a convolution's result is cheaper made anew than kept. It must be made of leaves alone:
  // what another step makes would have to be kept in its place. Variables among them must not be
  // assigned before the chain runs.
  bool may_compute_again(int conv, const Chain& chain) {
    const Region& r = region(conv);
    if (!is_conv(r, Op::Conv2d) || r.writes.size() != 1) return false;
    const Shape& filter = r.contraction.b_shape;
    if (filter[1] * filter[2] * filter[3] > kMostTaps) return false;
    const ValueId made = r.writes[0];
    if (m_.values()[at(made)].kind != Value::Kind::Arena) return false;
    for (ValueId id : r.reads) {
      const Value::Kind kind = m_.values()[at(id)].kind;
      if (kind != Value::Kind::Leaf && kind != Value::Kind::Variable) return false;
    }
    // Everybody else who reads it gets it from a chain as well.
    for (int s : readers(made))
      if (s != chain.steps[0] && !is_made_there(s, conv)) return false;
    for (int s : writers_of_inputs(r))
      for (int member : chain.steps)
        if (!has(chain.steps, s) && graph_.reaches(graph_.node(s), graph_.node(member)))
          return false;
    return true;
  }
  std::vector<int> writers_of_inputs(const Region& r) const {
    std::vector<int> steps;
    for (ValueId id : r.reads)
      steps.insert(steps.end(), m_.writers[at(id)].begin(), m_.writers[at(id)].end());
    return steps;
  }
  bool is_made_there(int step, int conv) const {
    const int chain = chain_of_[at(step)];
    return chain >= 0 && (chains_[at(chain)].again == conv || has(chains_[at(chain)].steps, conv));
  }
  bool consider(Chain chain) {
    std::string why = refusal(chain);
    if (!why.empty()) {
      if (chain.again < 0) note(region(chain.steps[1]), cat("no chain: ", why));
      return false;
    }
    if (!graph_.merge(graph_.node(chain.steps[0]), graph_.node(chain.steps[1])))
      throw InternalError("a chain whose steps others stand between");
    wait_for(chain);
    for (int s : chain.steps) chain_of_[at(s)] = static_cast<int>(chains_.size());
    chains_.push_back(std::move(chain));
    return true;
  }

  // Whether it is at least so much, said so in the program.
  bool reaches(std::int64_t size, std::int64_t least) {
    m_.program.limits.push_back({size, least - 1});
    return size >= least;
  }

  std::string refusal(const Chain& chain) {
    for (int s : chain.steps)
      if (chain_of_[at(s)] >= 0) return "one of the two is part of another";
    if (!reaches(chain.samples, kLeastSlices))
      return cat(chain.samples, " samples do not make ", kLeastSlices, " slices");
    const std::int64_t each = handed_on(chain);
    if (!reaches(each * chain.samples, kLeastBytes))
      return cat("the ", size_text(each * chain.samples), " in between stay in cache anyway");
    if (each > kSliceBytes)
      return cat("the ", size_text(each), " in between of a single sample do not stay in cache");
    const std::int64_t slice = slice_of(chain);
    if (filters(chain) * kFilterCost > slice * each)
      return "its filters are packed again for each slice, which costs more";
    if (graph_.is_between(graph_.node(chain.steps[0]), graph_.node(chain.steps[1])))
      return "another step stands between";
    std::string why;
    return engine_.claims(chained(chain), m_.values(), &why) ? "" : why;
  }

  // Bytes of a sample that one part writes and the next ones read.
  std::int64_t handed_on(const Chain& chain) const {
    std::int64_t bytes = 0;
    for (std::size_t k = 0; k + 1 < chain.parts.size(); ++k)
      for (ValueId id : chain.parts[k].writes)
        for (std::size_t l = k + 1; l < chain.parts.size(); ++l)
          if (has(chain.parts[l].reads, id)) {
            bytes += m_.values()[at(id)].bytes / chain.samples;
            break;
          }
    return bytes;
  }

  static std::int64_t filters(const Chain& chain) {
    std::int64_t bytes = 0;
    for (const Region& part : chain.parts) {
      if (part.kind != RegionKind::Contraction) continue;
      const Contraction& c = part.contraction;
      bytes += 4 * (c.op == Op::Conv2dWeightGrad ? c.out_shape : c.b_shape).numel();
    }
    return bytes;
  }

  // Samples of a slice: a power of two.
  std::int64_t slice_of(const Chain& chain) {
    const std::int64_t each = handed_on(chain);
    std::int64_t slice = 1;
    while (2 * slice * each <= kSliceBytes && reaches(chain.samples, 2 * slice * kLeastSlices))
      slice *= 2;
    return slice;
  }

  // What is handed on and read by no other step than those that make it for themselves.
  void find_local(Chain& chain) {
    for (const Region& part : chain.parts)
      for (ValueId id : part.writes) {
        if (m_.values()[at(id)].kind != Value::Kind::Arena) continue;
        const std::vector<int> users = readers(id);
        const int maker = writer(id);
        if (std::all_of(users.begin(), users.end(), [&](int s) { return is_made_there(s, maker); }))
          chain.local.push_back(id);
      }
  }

  Region chained(const Chain& chain) {
    Region all;
    all.kind = RegionKind::Chain;
    all.samples = chain.samples;
    all.slice = slice_of(chain);
    all.parts = chain.parts;
    all.local = chain.local;
    all.label = chain.parts.back().label;
    for (std::size_t k = 0; k < all.parts.size(); ++k) {
      all.parts[k].phase = static_cast<int>(k);
      all.title += cat(k == 0 ? "" : ", ", all.parts[k].title);
    }
    for (const Region& part : all.parts) add_accesses(all, part);
    return all;
  }

  Step made(const Chain& chain) {
    Step step;
    step.region = chained(chain);
    const std::int64_t bytes = handed_on(chain) * chain.samples;
    step.region.why = cat(
        "run one after another for ", step.region.slice, " samples at a time: ", size_text(bytes),
        " in between stay in cache", chain.local.empty() ? "" : ", and are never whole tensors",
        chain.again < 0 ? "" : cat("; ", region(chain.again).title, " is computed again"));
    return step;
  }

  void rewrite() {
    if (chains_.empty()) return;
    // The text about what is computed again needs that step's title, which moves with the parts.
    std::vector<Step> steps;
    for (const Chain& chain : chains_) steps.push_back(made(chain));
    for (const Chain& chain : chains_)
      for (ValueId id : chain.local) m_.elide(id);
    Lists groups;
    for (const Chain& chain : chains_) groups.push_back(chain.steps);
    std::size_t next = 0;
    m_.replace(groups, [&](const std::vector<int>&) { return std::move(steps[next++]); });
  }

  // What is computed again reads its variables later: who assigns them comes after.
  void wait_for(const Chain& chain) {
    if (chain.again < 0) return;
    for (int s : writers_of_inputs(region(chain.again))) {
      if (has(chain.steps, s)) continue;
      std::vector<int>& waits = m_.before[at(s)];
      waits.insert(waits.end(), chain.steps.begin(), chain.steps.end());
      graph_.add_edge(chain.steps[0], s);
    }
  }

  Merger& m_;
  const Engine& engine_;
  PlanGraph& graph_;           // with the chains so far as one each
  std::vector<int> chain_of_;  // by step
  std::vector<Chain> chains_;
};

}  // namespace

void merge_slices(Merger& merger) {
  if (!merger.options.enabled(kChain)) return;
  for (const Engine* engine : merger.options.engines)
    if (engine->capabilities(Region(), merger.values()).no_slices == nullptr)
      return Chainer(merger, *engine).run();
}

}  // namespace tenon

// Chains: steps that run one after another for a few entries of an axis at a time. Intermediate
// values, and inputs that several steps read, are then still in cache when they are read again. An
// intermediate value without readers outside the chain is never a whole tensor: the step's
// workspace holds one slice of it at a time.
//
// The search starts at a large value that several steps read or write, and tries each of its axes
// in turn. It adds steps in program order: steps that wait for members, and other readers of what
// members read. Engines and index maps (plan/merge/slices.h) must allow the slices, and no step
// outside the chain may stand in between. The search looks at a fixed number of steps. Where an
// entry (an image) is too large, or there are too few entries, rows are cut too, into bands
// (plan/merge/band_path.h).
//
// Whether a chain pays is a comparison of bytes: traffic saved against work that each slice
// repeats. A value that is cheaper to compute than to keep is recomputed (rematerialisation;
// Griewank and Walther, "Algorithm 799", 2000).
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <tenon/error.h>

#include "base/contains.h"
#include "base/str.h"
#include "device/cpu_model.h"
#include "plan/merge/band_path.h"
#include "plan/merge/merge.h"
#include "plan/merge/slices.h"
#include "plan/program/tune.h"

namespace tenon {
namespace {

// Smaller values stay in cache between steps even without a chain.
constexpr std::int64_t kLeastBytes = kCpu.last_cache;
// Bytes of a slice's intermediate values that stay in a core's own cache beside the operands.
constexpr std::int64_t kSliceBytes = kCpu.second_cache;
// The least number of slices, so that threads have work to share. The number of slices depends on
// shapes alone, and so do the result bits.
constexpr std::int64_t kLeastSlices = kCpu.many_chunks;
constexpr std::int64_t kMostWorkOfByte = kCpu.most_work_of_byte;
// Multiply-adds for one element that cost less than writing and reading the element.
constexpr auto kMostWork = static_cast<double>(kCpu.multiply_adds_instead_of(4));
// Steps that one search looks at.
constexpr int kMostLooks = 96;

/// Steps that would run slice by slice.
struct Chain {
  std::vector<int> steps;     // in order
  std::vector<Region> parts;  // one more than steps if the first part is recomputed
  std::vector<ChainAccess> accesses;
  int recomputed = -1;       // the step that is recomputed
  std::int64_t entries = 0;  // entries along the axis
  std::int64_t band = 0;  // rows of an entry (out of `rows`) computed at a time; 0: whole entries
  std::int64_t rows = 0;
  std::int64_t handed = 0;     // bytes per entry that are read again from cache
  std::int64_t whole = 0;      // bytes of whole operands that each slice packs again
  std::int64_t work = 0;       // multiply-adds
  std::vector<ValueId> local;  // without readers or writers outside the chain
};

class Chainer {
 public:
  Chainer(Merger& merger, const Engine& engine)
      : m_(merger),
        engine_(engine),
        graph_(merger.times.graph()),
        chain_of_(merger.program.steps.size(), -1),
        is_large_(merger.program.values.size(), 0) {}

  void run() {
    find_large();
    for (std::size_t v = 0; v < is_large_.size(); ++v)
      if (is_large_[v] != 0) grow_from(static_cast<ValueId>(v));
    for (Chain& chain : chains_)
      if (chain.band == 0) find_local(chain);
    rewrite();
  }

 private:
  using Steps = std::set<std::pair<std::int64_t, int>>;  // position and step

  Region& region(int step) { return m_.region(step); }
  const Value& value(ValueId id) const { return m_.values()[at(id)]; }
  const SmallIntVector& readers(ValueId id) const { return m_.readers[at(id)]; }
  const SmallIntVector& writers(ValueId id) const { return m_.writers[at(id)]; }
  std::int64_t place(int step) const { return graph_.place(graph_.node(step)); }
  std::int64_t bytes(ValueId id) const {
    return value(id).shape.numel() * static_cast<std::int64_t>(item_size(value(id).dtype));
  }

  // Whether `size` is at least `least`. Records the comparison in the program (Program::limits).
  bool reaches(std::int64_t size, std::int64_t least) {
    m_.program.limits.push_back({size, least - 1});
    return size >= least;
  }

  // Finds values that do not stay in cache between steps.
  void find_large() {
    std::set<std::int64_t> asked;  // sizes, each recorded once
    for (std::size_t v = 0; v < is_large_.size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      if (readers(id).empty() || value(id).kind == Value::Kind::Elided) continue;
      const std::int64_t size = bytes(id);
      if (asked.insert(size).second) m_.program.limits.push_back({size, kLeastBytes - 1});
      is_large_[v] = size >= kLeastBytes ? 1 : 0;
    }
  }

  Steps meeting(ValueId id) const {
    Steps steps;
    for (const SmallIntVector& list : {readers(id), writers(id)})
      for (int s : list)
        if (chain_of_[at(s)] < 0) steps.emplace(place(s), s);
    return steps;
  }

  // The best chain over an axis of the value whose slices are contiguous.
  void grow_from(ValueId id) {
    const Steps steps = meeting(id);
    if (steps.size() < 2) return;
    Chain best;
    std::string why;
    const Shape& shape = value(id).shape;
    std::int64_t step = bytes(id);
    for (int d = 0; d < shape.rank(); ++d) {
      step /= shape[d];
      if (step * shape[d] < bytes(id)) break;  // an axis in front of it has several entries
      if (!reaches(shape[d], kLeastSlices)) {
        if (shape[d] > 1) why = cat(shape[d], " entries are too few for ", kLeastSlices, " slices");
        continue;
      }
      Chain chain = grown(id, step, shape[d], steps);
      if (chain.handed == 0) continue;
      const std::string refusal = refused(chain);
      if (why.empty()) why = refusal;
      if (refusal.empty() && is_better(chain, best)) best = std::move(chain);
    }
    if (best.steps.empty()) best = in_bands(id, why);
    if (best.steps.empty()) {
      if (!why.empty()) note(region(steps.rbegin()->second), cat("no chain: ", why));
      return;
    }
    take(std::move(best));
  }

  Chain in_bands(ValueId id, std::string& why) {
    BandPath path = find_bands(m_, engine_, id, [&](int step) { return chain_of_[at(step)] < 0; });
    Chain chain;
    chain.steps = std::move(path.steps);
    chain.parts = std::move(path.parts);
    chain.local = std::move(path.local);
    chain.entries = path.entries;
    chain.band = path.band;
    chain.rows = path.rows;
    chain.handed = path.handed;
    if (!path.why.empty()) why += cat(why.empty() ? "" : "; ", "in bands of rows: ", path.why);
    return chain;
  }

  bool is_better(const Chain& chain, const Chain& than) {
    if (than.steps.empty()) return true;
    return reaches(chain.handed * chain.entries, than.handed * than.entries + 1);
  }

  // The state of one search.
  struct Growth {
    Chain chain;
    Steps waiting;
    std::set<int> seen;      // nodes
    std::set<int> outside;   // nodes outside the chain that wait for a member
    std::int64_t last = -1;  // position of the last member
  };

  Chain grown(ValueId seed, std::int64_t step, std::int64_t entries, const Steps& steps) {
    Growth g;
    g.chain.entries = entries;
    g.chain.accesses.push_back({seed, step, 1});
    g.waiting = steps;
    for (int looks = 0; looks < kMostLooks && !g.waiting.empty(); ++looks) {
      const int s = g.waiting.begin()->second;
      g.waiting.erase(g.waiting.begin());
      if (!g.seen.insert(graph_.node(s)).second) continue;
      visit(g, s);
    }
    trim(g.chain);
    return std::move(g.chain);
  }

  void visit(Growth& g, int s) {
    const int node = graph_.node(s);
    const std::int64_t at_place = place(s);
    const auto is_member = [&](int n) { return contains(g.chain.steps, n); };
    bool follows = false, is_apart = chain_of_[at(s)] >= 0;
    for (int p : graph_.needs(node)) {
      is_apart = is_apart || g.outside.count(p) != 0;
      follows = follows || is_member(p) || g.outside.count(p) != 0;
    }
    if (is_apart || (at_place < g.last && depends_through_others(g, node)) || !join(g.chain, s)) {
      if (!follows) return;
      g.outside.insert(node);
    } else {
      g.last = std::max(g.last, at_place);
      for (ValueId id : region(s).reads)
        if (is_large_[at(id)] != 0) g.waiting.merge(meeting(id));
    }
    for (int next : graph_.after(node)) g.waiting.emplace(graph_.place(next), next);
  }

  // Whether a member waits for a step outside that waits for this step.
  bool depends_through_others(const Growth& g, int node) {
    for (int next : graph_.after(node)) {
      if (contains(g.chain.steps, next)) continue;
      for (int member : g.chain.steps)
        if (graph_.reaches(next, graph_.node(member))) return true;
    }
    return false;
  }

  // Adds a step if its slices match the chain's and everything stays in cache.
  bool join(Chain& chain, int s) {
    const Engine* engine = first_that_claims(m_.options.engines, region(s), m_.values());
    if (engine == nullptr) return false;
    const Capabilities can = engine->capabilities(region(s), m_.values());
    if (can.no_slices != nullptr || ends(chain)) return false;
    Chain longer = chain;
    Region part = region(s);
    if (find_axis(part, can, m_.values(), chain.entries, chain.accesses) != nullptr) return false;
    if (list_accesses(part, can, m_.values(), chain.entries, longer.accesses) != nullptr)
      return false;
    const auto behind = std::find_if(longer.steps.begin(), longer.steps.end(),
                                     [&](int t) { return place(t) > place(s); });
    longer.parts.insert(longer.parts.begin() + (behind - longer.steps.begin()), std::move(part));
    longer.steps.insert(behind, s);
    measure(longer);
    if (!chain.steps.empty() && chain.handed > 0) {
      if (!fits(longer)) return false;
      if (longer.work > chain.work && (costs_more(longer) || is_work(longer))) return false;
    }
    chain = std::move(longer);
    return true;
  }

  // A part that sums over slices must be the last part.
  bool ends(const Chain& chain) {
    return std::any_of(chain.parts.begin(), chain.parts.end(),
                       [&](const Region& part) { return capabilities(part).sums_slices; });
  }
  Capabilities capabilities(const Region& part) {
    const Engine* engine = first_that_claims(m_.options.engines, part, m_.values());
    return engine == nullptr ? Capabilities() : engine->capabilities(part, m_.values());
  }

  // Whether a slice of the value is read again from cache. Scattered slices do not count: batch
  // norm's four passes over float32[128, 16, 32, 32], one channel at a time, were not faster than
  // the same passes over whole values.
  bool counts(const ChainAccess& access) const {
    return is_large_[at(access.value)] != 0 && access.places == 1;
  }

  // Counts the bytes that stay in cache and the bytes that slices pack.
  void measure(Chain& chain) {
    std::map<ValueId, std::int64_t> met;
    chain.whole = chain.handed = chain.work = 0;
    for (const Region& part : chain.parts) {
      for (ValueId id : part.reads) ++met[id];
      for (ValueId id : part.writes)
        if (!contains(part.reads, id)) ++met[id];
      if (part.kind != RegionKind::Contraction) continue;
      const Capabilities can = capabilities(part);
      const Contraction& c = part.contraction;
      chain.work += static_cast<std::int64_t>(multiply_adds(c));
      if (can.sums_slices)
        chain.whole += 4 * c.out_shape.numel();
      else if (!can.slices_input(1))
        chain.whole += 4 * c.b_shape.numel();
    }
    for (const ChainAccess& access : chain.accesses) {
      const auto found = met.find(access.value);
      if (found != met.end() && counts(access)) chain.handed += (found->second - 1) * access.step;
    }
  }

  // Bytes of an entry that a slice touches more than once.
  std::int64_t kept(const Chain& chain) const {
    std::int64_t bytes = 0;
    for (const ChainAccess& access : chain.accesses) {
      if (!counts(access)) continue;
      int met = 0;
      for (const Region& part : chain.parts)
        met += contains(part.reads, access.value) || contains(part.writes, access.value) ? 1 : 0;
      if (met > 1) bytes += access.step;
    }
    return bytes;
  }

  bool fits(const Chain& chain) { return !reaches(kept(chain), kSliceBytes + 1); }
  bool costs_more(const Chain& chain) {
    // Every slice packs the operands that it reads whole again.
    return reaches(kCpu.bytes_moved_during_packing(chain.whole) - slice_of(chain) * chain.handed,
                   1);
  }

  bool is_work(const Chain& chain) {
    return reaches(chain.work - kMostWorkOfByte * chain.handed * chain.entries, 1);
  }

  // Removes steps at the end that reuse nothing large.
  void trim(Chain& chain) {
    for (std::size_t k = chain.steps.size(); k-- > 0;) {
      const int node = chain.steps[k];
      const SmallIntVector& after = graph_.after(graph_.node(node));
      if (std::any_of(after.begin(), after.end(), [&](int t) { return contains(chain.steps, t); }))
        continue;
      Chain shorter = chain;
      const auto place = static_cast<std::ptrdiff_t>(k);
      shorter.steps.erase(shorter.steps.begin() + place);
      shorter.parts.erase(shorter.parts.begin() + place);
      measure(shorter);
      if (shorter.handed == chain.handed) chain = std::move(shorter);
    }
    std::vector<ChainAccess> met;
    for (const ChainAccess& access : chain.accesses)
      for (const Region& part : chain.parts)
        if (contains(part.reads, access.value) || contains(part.writes, access.value)) {
          met.push_back(access);
          break;
        }
    chain.accesses = std::move(met);
  }

  std::string refused(const Chain& chain) {
    if (!fits(chain))
      return cat("the ", size_text(kept(chain)), " of intermediate values for one of ",
                 chain.entries, " entries do not stay in cache");
    if (costs_more(chain))
      return "each slice packs the operands that it reads whole, which costs more than it saves";
    if (is_work(chain)) return "products take most of the time, not memory";
    std::string why;
    return engine_.claims(chained(chain), m_.values(), &why) ? "" : why;
  }

  // Entries of a slice: a power of two.
  std::int64_t slice_of(const Chain& chain) {
    const std::int64_t each = kept(chain);
    std::int64_t slice = 1;
    while (fits_times(2 * slice, each) && reaches(chain.entries, 2 * slice * kLeastSlices))
      slice *= 2;
    return slice;
  }
  bool fits_times(std::int64_t slice, std::int64_t each) {
    return !reaches(slice * each, kSliceBytes + 1);
  }

  void take(Chain chain) {
    if (chain.band == 0) recompute_first(chain);
    for (std::size_t k = 1; k < chain.steps.size(); ++k)
      if (!graph_.merge(graph_.node(chain.steps[0]), graph_.node(chain.steps[k])))
        throw InternalError("other steps must run between the steps of a chain");
    wait_for(chain);
    for (int s : chain.steps) chain_of_[at(s)] = static_cast<int>(chains_.size());
    chains_.push_back(std::move(chain));
  }

  // Recomputes a large operand of the chain in the chain, if that costs less than keeping the
  // operand.
  void recompute_first(Chain& chain) {
    for (std::size_t k = 0; k < chain.accesses.size(); ++k) {
      const ValueId id = chain.accesses[k].value;
      if (is_large_[at(id)] == 0 || writers(id).size() != 1) continue;
      const int maker = writers(id)[0];
      if (contains(chain.steps, maker) || !may_recompute(maker, id, chain)) continue;
      Chain longer = chain;
      Region part = region(maker);
      const Capabilities can = capabilities(part);
      if (find_axis(part, can, m_.values(), chain.entries, chain.accesses) != nullptr) continue;
      if (list_accesses(part, can, m_.values(), chain.entries, longer.accesses) != nullptr)
        continue;
      longer.recomputed = maker;
      longer.parts.insert(longer.parts.begin(), std::move(part));
      measure(longer);
      if (!refused(longer).empty()) continue;
      chain = std::move(longer);
      return;
    }
  }

  // The value must be computed from leaves alone: an intermediate operand would have to be kept
  // instead. Variables among the leaves must not be assigned before the chain runs.
  bool may_recompute(int maker, ValueId made, const Chain& chain) {
    const Region& r = region(maker);
    if (r.kind != RegionKind::Contraction || r.writes.size() != 1) return false;
    if (value(made).kind != Value::Kind::Arena) return false;
    if (multiply_adds(r.contraction) >
        kMostWork * static_cast<double>(r.contraction.out_shape.numel()))
      return false;
    for (ValueId id : r.reads) {
      const Value::Kind kind = value(id).kind;
      if (kind != Value::Kind::Leaf && kind != Value::Kind::Variable) return false;
    }
    // Every other reader must also get the value from a chain.
    for (int s : readers(made))
      if (!contains(chain.steps, s) && !is_made_there(s, maker)) return false;
    for (int s : writers_of_inputs(r))
      for (int member : chain.steps)
        if (!contains(chain.steps, s) && graph_.reaches(graph_.node(s), graph_.node(member)))
          return false;
    return true;
  }
  std::vector<int> writers_of_inputs(const Region& r) const {
    std::vector<int> steps;
    for (ValueId id : r.reads) steps.insert(steps.end(), writers(id).begin(), writers(id).end());
    return steps;
  }
  bool is_made_there(int step, int maker) const {
    const int chain = chain_of_[at(step)];
    return chain >= 0 &&
           (chains_[at(chain)].recomputed == maker || contains(chains_[at(chain)].steps, maker));
  }

  // The recomputed part reads its variables in the chain, so their assignments must wait for the
  // chain.
  void wait_for(const Chain& chain) {
    if (chain.recomputed < 0) return;
    for (int s : writers_of_inputs(region(chain.recomputed))) {
      if (contains(chain.steps, s)) continue;
      std::vector<int>& waits = m_.before[at(s)];
      waits.insert(waits.end(), chain.steps.begin(), chain.steps.end());
      graph_.add_edge(graph_.node(chain.steps[0]), graph_.node(s));
    }
  }

  // Finds values that only the chain's own parts read and write.
  void find_local(Chain& chain) {
    for (const Region& part : chain.parts)
      for (ValueId id : part.writes) {
        if (value(id).kind != Value::Kind::Arena) continue;
        const SmallIntVector& users = readers(id);
        const int maker = writers(id)[0];
        if (std::all_of(users.begin(), users.end(), [&](int s) { return is_made_there(s, maker); }))
          chain.local.push_back(id);
      }
  }

  Region chained(const Chain& chain) {
    Region all;
    all.kind = RegionKind::Chain;
    all.samples = chain.entries;
    all.slice = chain.band > 0 ? 1 : slice_of(chain);
    all.band = chain.band;
    all.parts = chain.parts;
    all.local = chain.local;
    all.label = chain.parts.back().label;
    constexpr std::size_t kNamed = 4;
    for (std::size_t k = 0; k < all.parts.size(); ++k) {
      all.parts[k].phase = static_cast<int>(k);
      if (k < kNamed) all.title += cat(k == 0 ? "" : ", ", all.parts[k].title);
    }
    if (all.parts.size() > kNamed) all.title += cat(", … (", all.parts.size(), ")");
    for (const Region& part : all.parts) add_accesses(all, part);
    return all;
  }

  Step made(const Chain& chain) {
    Step step;
    step.region = chained(chain);
    step.region.why = cat(
        "run one after another for ", chain.band > 0 ? chain.band : step.region.slice, " of ",
        chain.band > 0 ? chain.rows : chain.entries,
        chain.band > 0 ? " rows of an image at a time: " : " entries at a time: ",
        size_text(chain.handed * chain.entries), " of intermediate values stay in cache",
        chain.local.empty() ? "" : ", and are never whole tensors",
        chain.recomputed < 0 ? "" : cat("; ", region(chain.recomputed).title, " is recomputed"));
    return step;
  }

  void rewrite() {
    if (chains_.empty()) return;
    // All new steps are built first: the text about recomputation needs the title of a step whose
    // region moves into the parts.
    std::vector<Step> steps;
    for (const Chain& chain : chains_) steps.push_back(made(chain));
    for (const Chain& chain : chains_)
      for (ValueId id : chain.local) m_.elide(id);
    Lists groups;
    for (const Chain& chain : chains_) groups.push_back(chain.steps);
    std::size_t next = 0;
    m_.replace(groups, [&](const std::vector<int>&) { return std::move(steps[next++]); });
  }

  Merger& m_;
  const Engine& engine_;
  PlanGraph& graph_;            // each chain found so far is one node
  std::vector<int> chain_of_;   // by step
  std::vector<char> is_large_;  // by value
  std::vector<Chain> chains_;
};

}  // namespace

void merge_slices(Merger& merger) {
  if (!merger.options.enabled(kChain)) return;
  for (const Engine* engine : merger.options.engines)
    if (engine->capabilities(Region(), merger.values()).runs_chains)
      return Chainer(merger, *engine).run();
}

}  // namespace tenon

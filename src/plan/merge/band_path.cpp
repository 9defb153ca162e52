// Decides where running in bands of rows pays.
//
// Bands avoid writing intermediate values to memory and reading them again. Their costs are:
// - filters are packed for each band;
// - rows are computed twice where windows overlap;
// - input rows are copied into the worker's scratch memory (in cache);
// - result rows are copied out of it (to memory). With convolutions of 3 to 16 channels before
//   windows of 1x3, and a result as large, this took 1.16 times as long.
//
// The height of a band is the largest power of two whose rows stay in a core's own cache, as long
// as there are enough bands for many threads.
#include "plan/merge/band_path.h"

#include <algorithm>

#include "base/contains.h"
#include "base/index.h"
#include "base/str.h"
#include "device/cpu_model.h"
#include "plan/program/times.h"
#include "plan/program/tune.h"

namespace tenon {
namespace {

constexpr std::size_t kMostOfPath = 8;

class PathFinder {
 public:
  PathFinder(Merger& merger, const Engine& chains, const std::function<bool(int)>& is_free)
      : m_(merger), chains_(chains), is_free_(is_free) {}

  BandPath through(ValueId id) {
    BandPath best;
    if (value(id).shape.rank() != 4 || !is_handed_on(id)) return best;
    best = built({m_.writers[at(id)][0], m_.readers[at(id)][0]});
    while (!best.steps.empty() && best.steps.size() < kMostOfPath)
      if (!grow(best)) break;
    return best;
  }

 private:
  struct Part {
    Capabilities can;
    PartRows rows;
    double row_work = 0;  // multiply-adds per row
  };

  const Value& value(ValueId id) const { return m_.values()[at(id)]; }
  std::int64_t bytes(ValueId id) const {
    return value(id).shape.numel() * static_cast<std::int64_t>(item_size(value(id).dtype));
  }
  bool reaches(std::int64_t size, std::int64_t least) {
    m_.program.limits.push_back({size, least - 1});
    return size >= least;
  }

  // Whether exactly one step writes the value and exactly one step reads it.
  bool is_handed_on(ValueId id) const {
    return value(id).kind == Value::Kind::Arena && m_.writers[at(id)].size() == 1 &&
           m_.readers[at(id)].size() == 1;
  }

  // Adds one step at the end where it saves more.
  bool grow(BandPath& path) {
    const auto is_better = [&](const std::vector<int>& steps) {
      BandPath longer = built(steps);
      if (longer.steps.empty()) return false;
      if (!reaches(longer.handed * longer.entries, path.handed * path.entries + 1)) return false;
      path = std::move(longer);
      return true;
    };
    std::vector<int> steps = path.steps;
    const Region& last = m_.region(steps.back());
    if (last.writes.size() == 1 && is_handed_on(last.writes[0])) {
      steps.push_back(m_.readers[at(last.writes[0])][0]);
      if (is_better(steps)) return true;
      steps.pop_back();
    }
    for (ValueId id : m_.region(steps[0]).reads) {
      if (value(id).shape.rank() != 4 || !is_handed_on(id)) continue;
      steps.insert(steps.begin(), m_.writers[at(id)][0]);
      if (is_better(steps)) return true;
      steps.erase(steps.begin());
    }
    return false;
  }

  BandPath built(const std::vector<int>& steps) {
    BandPath path, none;
    parts_.clear();
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const Region& region = m_.region(steps[k]);
      if (!is_free_(steps[k]) || depends_through_others(steps, steps[k])) return none;
      if (k + 1 == steps.size()) break;
      if (region.writes.size() != 1 || value(region.writes[0]).shape.rank() != 4) return none;
      path.local.push_back(region.writes[0]);
    }
    path.entries = value(path.local[0]).shape[0];
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const char* why = add(path, m_.region(steps[k]), path.local[k == 0 ? 0 : k - 1]);
      if (why == nullptr) continue;
      none.why = cat(m_.region(steps[k]).title, " ", why);
      return none;
    }
    path.rows = parts_.back().rows.rows;
    path.steps = steps;
    none.why = refused(path);
    return none.why.empty() ? path : none;
  }

  // Whether a step outside the path waits for a member while another member waits for that step.
  bool depends_through_others(const std::vector<int>& steps, int step) {
    PlanGraph& graph = m_.times.graph();
    const auto is_member = [&](int node) {
      return std::any_of(steps.begin(), steps.end(), [&](int s) { return graph.node(s) == node; });
    };
    for (int next : graph.after(graph.node(step))) {
      if (is_member(next)) continue;
      for (int other : steps)
        if (graph.reaches(next, graph.node(other))) return true;
    }
    return false;
  }

  // Adds a part at the end of the path, which reads the value `met`.
  const char* add(BandPath& path, const Region& region, ValueId met) {
    const Engine* engine = first_that_claims(m_.options.engines, region, m_.values());
    if (engine == nullptr) return "runs on no engine that can compute it piece by piece";
    Region part = region;
    Part own;
    own.can = engine->capabilities(region, m_.values());
    if (own.can.no_bands != nullptr) return own.can.no_bands;
    const Shape& image = value(met).shape;
    if (image[0] != path.entries || image.numel() == 0)
      return "has another number of images than the chain";
    const auto item = static_cast<std::int64_t>(item_size(value(met).dtype));
    const ChainAccess entry{met, bytes(met) / image[0], 1};
    const ChainAccess row{met, image[3] * item, image[0] * image[1]};
    const char* why = find_axis(part, own.can, m_.values(), image[0], std::span(&entry, 1));
    if (why == nullptr) why = find_rows(part, own.can, m_.values(), image[2], std::span(&row, 1));
    std::vector<ChainAccess> entries;
    if (why == nullptr) why = list_accesses(part, own.can, m_.values(), image[0], entries);
    if (why == nullptr) why = list_rows(part, m_.values(), own.rows);
    if (why != nullptr) return why;
    if (part.kind == RegionKind::Contraction)
      own.row_work =
          multiply_adds(part.contraction) / static_cast<double>(path.entries * own.rows.rows);
    path.parts.push_back(std::move(part));
    parts_.push_back(std::move(own));
    return nullptr;
  }

  Region chained(const BandPath& path) const {
    Region chain;
    chain.kind = RegionKind::Chain;
    chain.samples = path.entries;
    chain.slice = 1;
    chain.band = path.band;
    chain.parts = path.parts;
    chain.local = path.local;
    return chain;
  }

  // Bytes of a band with this many rows that lies inside the image, away from its first and last
  // rows.
  struct Bytes {
    std::int64_t kept = 0, copied_in = 0, copied_out = 0;
    double repeated = 0;  // multiply-adds of rows that another band computes too
  };

  Bytes bytes_of(const BandPath& path, std::int64_t rows) const {
    std::vector<PartRows> own;
    own.reserve(parts_.size());
    for (const Part& part : parts_) own.push_back(part.rows);
    std::vector<PartBand> bands;
    Bytes out;
    if (!list_bands(chained(path), own, {0, rows}, false, bands)) return out;
    for (std::size_t k = 0; k < bands.size(); ++k) {
      const auto share = static_cast<double>(rows * own[k].rows) / static_cast<double>(path.rows);
      const auto made = static_cast<double>(bands[k].made.count);
      out.repeated += std::max(0.0, made - share) * parts_[k].row_work;
      for (const ChainAccess& access : own[k].accesses) {
        const bool operand = access.value == own[k].operand;
        const std::int64_t places = access.places / path.entries;
        const std::int64_t size =
            access.step * places * (operand ? bands[k].read : bands[k].made).count;
        if (is_local(path, access.value)) {
          if (operand) out.kept += size;
        } else if (places > 1 && (operand || access.value == own[k].result)) {
          (operand ? out.copied_in : out.copied_out) += size;
        }
      }
    }
    out.kept += out.copied_in + out.copied_out;
    return out;
  }
  static bool is_local(const BandPath& path, ValueId id) { return contains(path.local, id); }

  // Chooses the height of a band. Returns why bands do not pay; empty if they do.
  std::string refused(BandPath& path) {
    path.band = 1;
    std::string why;
    if (!chains_.claims(chained(path), m_.values(), &why)) return why;
    const auto fits = [&](std::int64_t rows) {
      return !reaches(bytes_of(path, rows).kept, kCpu.second_cache + 1);
    };
    if (!fits(1)) return "one row of the intermediate values does not stay in cache";
    while (reaches(path.rows, 2 * path.band) && fits(2 * path.band) &&
           reaches(path.entries * (path.rows / (2 * path.band)), kCpu.many_chunks))
      path.band *= 2;
    if (!reaches(path.entries * path.rows, path.band * kCpu.many_chunks))
      return cat(path.entries, " images of ", path.rows, " rows are too few for ", kCpu.many_chunks,
                 " bands");
    for (ValueId id : path.local) path.handed += bytes(id) / path.entries;
    return cost_refusal(path);
  }

  std::string cost_refusal(const BandPath& path) {
    double work = 0;
    std::int64_t packed = 0;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      work += parts_[k].row_work * static_cast<double>(parts_[k].rows.rows);
      if (path.parts[k].kind == RegionKind::Contraction)
        packed += 4 * path.parts[k].contraction.b_shape.numel();
    }
    if (reaches(static_cast<std::int64_t>(work) - kCpu.most_work_of_byte * path.handed, 1))
      return "products take most of the time, not memory";
    const Bytes band = bytes_of(path, path.band);
    const double inside = static_cast<double>(band.copied_in) / kCpu.cache +
                          band.repeated / kCpu.multiply_adds;  // cycles
    const std::int64_t cost = kCpu.bytes_moved_during_packing(packed) + band.copied_out +
                              static_cast<std::int64_t>(inside * kCpu.memory);
    if (reaches(cost * path.rows - path.handed * path.band, 0))
      return "packing, copying and recomputing for each band costs more than it saves";
    return "";
  }

  Merger& m_;
  const Engine& chains_;
  const std::function<bool(int)>& is_free_;
  std::vector<Part> parts_;  // parts of the path under construction
};

}  // namespace

BandPath find_bands(Merger& merger, const Engine& chains, ValueId through,
                    const std::function<bool(int)>& is_free) {
  return PathFinder(merger, chains, is_free).through(through);
}

}  // namespace tenon

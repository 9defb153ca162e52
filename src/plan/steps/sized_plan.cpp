// Fits a line through the numbers of two plans and evaluates the lines at a new size.
#include "plan/steps/sized_plan.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <utility>

#include "base/index.h"
#include "plan/program/program_sizes.h"
#include "plan/steps/schedule.h"

namespace tenon {
namespace {

struct Collect {
  std::vector<std::uint64_t> words;
  std::vector<std::int64_t> sizes;
  void fixed(std::uint64_t word) { words.push_back(word); }
  void size(std::int64_t size) { sizes.push_back(size); }
};

// The plan without the data that is recomputed for each size (kernels, texts about sizes). Steps
// are in planning order.
Program skeleton(const Program& p) {
  Program out;
  out.values = p.values;
  out.slots = p.slots;
  out.outputs = p.outputs;
  out.assigned = p.assigned;
  out.devices = p.devices;
  out.device = p.device;
  out.traits = p.traits;
  out.threads = p.threads;
  out.leaf_bytes = p.leaf_bytes;
  out.output_bytes = p.output_bytes;
  out.before = p.before;
  out.node_count = p.node_count;
  out.rebound = true;
  out.steps.resize(p.steps.size());
  for (std::size_t k = 0; k < p.steps.size(); ++k) {
    Region& region = out.steps[p.order.empty() ? k : at(p.order[k])].region;
    region = p.steps[k].region;
    region.why.clear();
  }
  return out;
}

}  // namespace

std::optional<SizedPlan::Lines> SizedPlan::fit(const std::vector<std::int64_t>& a,
                                               const std::vector<std::int64_t>& b,
                                               std::int64_t size_a, std::int64_t size_b) {
  Lines lines;
  if (a.size() != b.size()) return {};
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k] == b[k]) continue;
    const std::int64_t rise = b[k] - a[k], run = size_b - size_a;
    if (rise % run != 0) return {};
    const std::int64_t slope = rise / run;
    lines.varying.push_back({static_cast<std::uint32_t>(k), a[k] - slope * size_a, slope});
  }
  lines.first = a;
  return lines;
}

std::shared_ptr<const SizedPlan> SizedPlan::learn(const GraphForm& a, const Program& plan_a,
                                                  const GraphForm& b, const Program& plan_b) {
  if (a.fixed != b.fixed || a.sizes.size() != b.sizes.size()) return nullptr;
  auto out = std::make_shared<SizedPlan>();
  // The smallest change. All other changes must be multiples of it.
  std::int64_t least = 0;
  for (std::size_t k = 0; k < a.sizes.size(); ++k) {
    const std::int64_t change = std::abs(a.sizes[k] - b.sizes[k]);
    if (change == 0 || (least != 0 && change >= least)) continue;
    least = change;
    out->symbol_ = k;
  }
  if (least == 0) return nullptr;
  const Sample first{a.sizes[out->symbol_], &plan_a}, second{b.sizes[out->symbol_], &plan_b};
  std::optional<Lines> graph = fit(a.sizes, b.sizes, first.size, second.size);
  if (!graph) return nullptr;
  out->graph_ = std::move(*graph);
  if (!out->learn_extents(a) || !out->has_same_choices_at(first.size) ||
      !out->has_same_choices_at(second.size))
    return nullptr;
  return out->learn_program(first, second) ? out : nullptr;
}

bool SizedPlan::predicts(std::int64_t size, const Program& plan) const {
  const Program other = skeleton(plan);
  Collect mine, theirs;
  ProgramSizes(mine).program(plan_);
  ProgramSizes(theirs).program(other);
  for (const Line& line : numbers_) mine.sizes[line.place] = line.at(size);
  if (mine.words != theirs.words || mine.sizes != theirs.sizes) return false;
  return std::all_of(inner_.begin(), inner_.end(), [&](const Inner& inner) {
    return inner.plan->predicts(size, *other.steps[inner.step].region.opaque.bodies[inner.body]);
  });
}

bool SizedPlan::learn_program(const Sample& a, const Sample& b) {
  plan_ = skeleton(*a.plan);
  const Program other = skeleton(*b.plan);
  Collect in_a, in_b;
  ProgramSizes(in_a).program(std::as_const(plan_));
  ProgramSizes(in_b).program(other);
  if (in_a.words != in_b.words) return false;
  const std::optional<Lines> numbers = fit(in_a.sizes, in_b.sizes, a.size, b.size);
  if (!numbers || !learn_limits(a, b)) return false;
  numbers_ = numbers->varying;
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const auto &mine = plan_.steps[s].region.opaque.bodies,
               &theirs = other.steps[s].region.opaque.bodies;
    for (std::size_t k = 0; k < mine.size(); ++k) {
      auto body = std::make_shared<SizedPlan>();
      if (!body->learn_program({a.size, mine[k].get()}, {b.size, theirs[k].get()})) return false;
      inner_.push_back({s, k, std::move(body)});
    }
  }
  return true;
}

bool SizedPlan::learn_limits(const Sample& a, const Sample& b) {
  std::vector<std::int64_t> sizes_a, sizes_b;
  for (const SizeLimit& limit : a.plan->limits) sizes_a.push_back(limit.size);
  for (const SizeLimit& limit : b.plan->limits) sizes_b.push_back(limit.size);
  const std::optional<Lines> lines = fit(sizes_a, sizes_b, a.size, b.size);
  if (!lines) return false;
  for (std::size_t k = 0; k < sizes_a.size(); ++k)
    if (a.plan->limits[k].most != b.plan->limits[k].most ||
        a.plan->limits[k].multiple != b.plan->limits[k].multiple)
      return false;
  for (const Line& line : lines->varying) {
    const SizeLimit& of = a.plan->limits[line.place];
    const bool holds = of.holds(sizes_a[line.place]);
    if (holds != of.holds(sizes_b[line.place])) return false;
    limits_.push_back({line, of, holds});
  }
  return true;
}

bool SizedPlan::learn_extents(const GraphForm& form) {
  std::vector<Extent> extents;
  for (const std::int64_t size : graph_.first) extents.push_back({size, 0});
  for (const Line& line : graph_.varying) extents[line.place] = {line.base, line.slope};
  // Strides and counts are products of neighbouring extents.
  std::vector<Extent> all = {{0, 0}, {1, 0}};
  for (const GraphForm::Extents& tensor : form.extents)
    for (std::uint32_t i = 0; i < tensor.rank; ++i) {
      Extent product = {1, 0};
      for (std::uint32_t j = i; j < tensor.rank; ++j) {
        const auto [base, slope] = extents[tensor.first + j];
        // The product is not linear in the size.
        if (slope != 0 && product.slope != 0) return false;
        product = {product.base * base, product.base * slope + product.slope * base};
        all.push_back(product);
      }
    }
  all.insert(all.end(), extents.begin(), extents.end());
  // A sum over this many elements, divided by their number, is a mean (sum_rules.h).
  for (const std::int64_t number : form.numbers) all.push_back({number, 0});
  list_extents(all);
  return true;
}

void SizedPlan::list_extents(const std::vector<Extent>& all) {
  const std::set<Extent> distinct(all.begin(), all.end());
  for (const Extent& extent : distinct) {
    if (extent.slope == 0)
      constants_.push_back(extent.base);
    else
      extents_.push_back(extent);
  }
}

bool SizedPlan::has_same_choices_at(std::int64_t size) const {
  for (const Limit& limit : limits_)
    if (limit.of.holds(limit.size.at(size)) != limit.holds) return false;
  for (const Inner& inner : inner_)
    if (!inner.plan->has_same_choices_at(size)) return false;
  std::vector<std::int64_t> values;
  values.reserve(extents_.size());
  for (const Extent& e : extents_) values.push_back(e.base + e.slope * size);
  std::sort(values.begin(), values.end());
  if (std::adjacent_find(values.begin(), values.end()) != values.end()) return false;
  return std::none_of(values.begin(), values.end(), [&](std::int64_t value) {
    return std::binary_search(constants_.begin(), constants_.end(), value);
  });
}

std::optional<std::int64_t> SizedPlan::size_of(const GraphForm& form) const {
  if (form.sizes.size() != graph_.first.size()) return {};
  const std::int64_t size = form.sizes[symbol_];
  auto next = graph_.varying.begin();
  for (std::size_t k = 0; k < form.sizes.size(); ++k) {
    const bool varies = next != graph_.varying.end() && next->place == k;
    if (form.sizes[k] != (varies ? next++->at(size) : graph_.first[k])) return {};
  }
  if (!has_same_choices_at(size)) return {};
  return size;
}

namespace {

// Sets the numbers that depend on the size.
template <class Line>
struct Set {
  const std::vector<Line>& lines;
  std::int64_t to;
  std::uint32_t place = 0;
  std::size_t next = 0;
  void fixed(std::uint64_t) {}
  void size(std::int64_t& number) {
    if (next < lines.size() && lines[next].place == place) number = lines[next++].at(to);
    ++place;
  }
};

}  // namespace

std::shared_ptr<const Program> SizedPlan::at_size(std::int64_t size,
                                                  const PlanOptions& options) const {
  const auto start = std::chrono::steady_clock::now();
  auto program = std::make_shared<Program>(skeleton(plan_));
  Program& p = *program;
  Set<Line> set{numbers_, size};
  ProgramSizes(set).program(p);
  PlanOptions inside = options;
  inside.results_apart = true;
  inside.copies = {};
  for (const Inner& inner : inner_)
    p.steps[inner.step].region.opaque.bodies[inner.body] = inner.plan->at_size(size, inside);
  choose_engines(p, options);
  PassTally untold;  // not reported, because the first plan's passes are recorded
  order_steps(p, std::exchange(p.before, {}), options, untold);
  plan_memory(p, options);
  p.planning_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return program;
}

std::int64_t footprint(const Region& region) {
  auto bytes = static_cast<std::int64_t>(
      sizeof region + region.title.capacity() + region.why.capacity() +
      (region.reads.capacity() + region.writes.capacity()) * sizeof(ValueId) +
      region.map.instrs.capacity() * sizeof(MapInstr));
  for (const Region& part : region.parts) bytes += footprint(part);
  return bytes;
}

std::int64_t SizedPlan::bytes() const {
  std::int64_t bytes = static_cast<std::int64_t>(
      sizeof *this + (graph_.first.capacity() + constants_.capacity()) * sizeof(std::int64_t) +
      (graph_.varying.capacity() + numbers_.capacity()) * sizeof(Line) +
      extents_.capacity() * sizeof(Extent) + plan_.values.capacity() * sizeof(Value));
  for (const Step& step : plan_.steps)
    bytes += static_cast<std::int64_t>(sizeof step) + footprint(step.region);
  for (const Inner& inner : inner_) bytes += inner.plan->bytes();
  return bytes;
}

}  // namespace tenon

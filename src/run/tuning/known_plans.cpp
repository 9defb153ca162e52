// The table of known graphs, and the plans, samples and learned plans of each graph.
#include "run/tuning/known_plans.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/form.h"
#include "plan/precision/rounding.h"
#include "plan/steps/schedule.h"
#include "plan/steps/sized_plan.h"
#include "run/caches.h"
#include "run/counts.h"
#include "run/tuning/tune.h"

namespace tenon {
namespace {

// If a size's plan disagrees with earlier plans, a new range of sizes starts with it.
constexpr std::size_t kMostSamples = 4, kMostPlans = 8;

struct FormKey {
  std::uint64_t lo = 0x13198A2E03707344ull, hi = 0xA4093822299F31D0ull;
  void mix(std::uint64_t v) {
    lo = (lo ^ v) * 0x9E3779B97F4A7C15ull;
    lo ^= lo >> 29;
    hi = (hi + v) * 0xC2B2AE3D27D4EB4Full;
    hi ^= hi >> 31;
    hi += lo;
  }
  bool operator==(const FormKey&) const = default;
};
struct FormKeyHash {
  std::size_t operator()(const FormKey& k) const { return k.lo ^ k.hi; }
};

class KnownGraph;
struct Table {
  std::mutex mutex;
  std::unordered_map<FormKey, std::shared_ptr<KnownGraph>, FormKeyHash> graphs;
};
Table& table() {
  static Table* const instance = new Table;
  return *instance;
}

// One graph at all its sizes.
class KnownGraph final : public CacheEntry {
 public:
  explicit KnownGraph(const FormKey& key) : CacheEntry(Kind::Program), key_(key) {
    charge(sizeof *this);
  }
  void leave(bool) override {
    std::shared_ptr<KnownGraph> last;  // destroyed after the lock is released
    const std::lock_guard lock(table().mutex);
    const auto found = table().graphs.find(key_);
    if (found == table().graphs.end() || found->second.get() != this) return;
    last = std::move(found->second);
    table().graphs.erase(found);
  }

  /// The program for exactly this size if somebody still holds it. Waits for a plan that another
  /// thread is making. Null: the caller must plan and then call end(), even if planning fails.
  std::shared_ptr<const Program> begin(const GraphForm& form) {
    std::unique_lock lock(mutex_);
    for (;;) {
      for (const Sample& sample : samples_)
        if (sample.form.sizes == form.sizes)
          if (std::shared_ptr<const Program> program = sample.program.lock()) return program;
      const auto same = [&](const GraphForm* other) { return other->sizes == form.sizes; };
      if (std::none_of(under_way_.begin(), under_way_.end(), same)) break;
      ended_.wait(lock);
    }
    under_way_.push_back(&form);
    return nullptr;
  }
  void end(const GraphForm& form) {
    {
      const std::lock_guard lock(mutex_);
      std::erase(under_way_, &form);
    }
    ended_.notify_all();
  }

  /// The learned plan that applies to the form, and its size; null: the form must be planned.
  std::pair<std::shared_ptr<const SizedPlan>, std::int64_t> find(const GraphForm& form) {
    const std::lock_guard lock(mutex_);
    for (const Learned& learned : plans_)
      if (learned.confirmed)
        if (const auto size = learned.plan->size_of(form); size && learned.serves(*size))
          return {learned.plan, *size};
    return {};
  }

  /// Adds a finished plan. The plan confirms or refutes what was learned before, or a new plan is
  /// learned from it and another one.
  void add(const GraphForm& form, const std::shared_ptr<const Program>& program) {
    const std::lock_guard lock(mutex_);
    if (!confirm(form, *program)) learn(form, *program);
    samples_.push_front({form, program});
    charge(bytes_of(samples_.front().form));  // a copy's vectors have no spare capacity
    if (samples_.size() <= kMostSamples) return;
    charge(-bytes_of(samples_.back().form));
    samples_.pop_back();
  }

 private:
  // The program itself is owned by its users.
  struct Sample {
    GraphForm form;
    std::weak_ptr<const Program> program;
  };
  struct Learned {
    std::shared_ptr<const SizedPlan> plan;
    bool on_gpu = false;
    bool confirmed = false;
    std::int64_t least = 0, most = 0;  // range of sizes at which planning confirmed this plan

    // On a GPU passes compare estimated microseconds, whose order changes at most once as a size
    // grows. So a decision that agrees at two sizes holds between them. The choice of tiles depends
    // on the next power of two.
    bool is_near(std::int64_t size) const { return !on_gpu || class_of(size) == class_of(most); }
    bool serves(std::int64_t size) const { return !on_gpu || (least <= size && size <= most); }
  };
  static std::uint64_t class_of(std::int64_t size) {
    return std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1)));
  }

  bool confirm(const GraphForm& form, const Program& program) {
    bool confirmed = false;
    std::erase_if(plans_, [&](Learned& learned) {
      const std::optional<std::int64_t> size = learned.plan->size_of(form);
      if (!size || !learned.is_near(*size)) return false;
      if (learned.confirmed && learned.serves(*size)) return false;
      const bool predicted = learned.plan->predicts(*size, program);
      if (predicted) {
        confirmed = learned.confirmed = true;
        learned.least = std::min(learned.least, *size);
        learned.most = std::max(learned.most, *size);
      }
      if (learned.confirmed) return false;
      charge(-learned.plan->bytes());
      return true;
    });
    return confirmed;
  }

  void learn(const GraphForm& form, const Program& program) {
    for (const Sample& sample : samples_) {
      const std::shared_ptr<const Program> other = sample.program.lock();
      if (other == nullptr) continue;
      std::shared_ptr<const SizedPlan> plan = SizedPlan::learn(sample.form, *other, form, program);
      if (plan == nullptr) continue;
      const std::int64_t a = plan->size_of(sample.form).value(), b = plan->size_of(form).value();
      const Learned learned{std::move(plan), program.device.kind != Device::Kind::Cpu, false,
                            std::min(a, b), std::max(a, b)};
      if (learned.is_near(learned.least)) return keep(learned);
    }
  }

  static std::int64_t bytes_of(const GraphForm& form) {
    return static_cast<std::int64_t>(form.fixed.capacity() * sizeof(std::uint64_t) +
                                     form.sizes.capacity() * sizeof(std::int64_t) +
                                     form.extents.capacity() * sizeof(GraphForm::Extents));
  }
  void keep(const Learned& learned) {
    charge(learned.plan->bytes());
    plans_.push_front(learned);
    if (plans_.size() <= kMostPlans) return;
    charge(-plans_.back().plan->bytes());
    plans_.pop_back();
  }

  const FormKey key_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<const GraphForm*> under_way_;  // forms that threads are planning now
  std::deque<Sample> samples_;
  std::deque<Learned> plans_;
};

// Wakes threads that wait for this plan, even if planning throws.
class Ending {
 public:
  Ending(KnownGraph& graph, const GraphForm& form) : graph_(graph), form_(form) {}
  ~Ending() { graph_.end(form_); }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  KnownGraph& graph_;
  const GraphForm& form_;
};

std::atomic<std::int64_t>& rebound() {
  static std::atomic<std::int64_t> count{0};
  return count;
}

FormKey key_of(const GraphForm& form, Device device, std::uint64_t planning) {
  FormKey key;
  key.mix(planning);
  key.mix(static_cast<std::uint64_t>(device.kind) << 32 | static_cast<std::uint64_t>(device.index));
  for (const std::uint64_t word : form.fixed) key.mix(word);
  return key;
}

std::shared_ptr<KnownGraph> known(const FormKey& key) {
  std::shared_ptr<KnownGraph> graph;
  {
    const std::lock_guard lock(table().mutex);
    std::shared_ptr<KnownGraph>& place = table().graphs[key];
    if (place != nullptr) {
      place->touch();
      return place;
    }
    place = graph = std::make_shared<KnownGraph>(key);
  }
  enter(graph);
  return graph;
}

}  // namespace

std::shared_ptr<const Program> known_or_planned(const NumberedOrder& order,
                                                std::span<const Tensor> roots,
                                                std::span<Node* const> leaves,
                                                const PlanOptions& options,
                                                std::uint64_t planning) {
  GraphForm form = form_of(order, roots);
  for (const RoundedCopy& copy : options.copies) {
    form.fixed.push_back(order.index[copy.weight]);
    form.fixed.push_back(static_cast<std::uint64_t>(copy.copy.dtype()) << 1 |
                         (is_stored_channels_last(copy.copy, *copy.weight) ? 1 : 0));
  }
  if (options.tuning != nullptr) planning ^= tuning_state();
  const std::shared_ptr<KnownGraph> graph = known(key_of(form, options.device, planning));
  if (const auto [plan, size] = graph->find(form); plan != nullptr) {
    std::shared_ptr<const Program> program = plan->at_size(size, options);
    rebound().fetch_add(1, std::memory_order_relaxed);
    return program;
  }
  if (std::shared_ptr<const Program> program = graph->begin(form)) {
    if (options.tuning != nullptr) repeat_choices(*program, *options.tuning);
    return program;
  }
  const Ending ending(*graph, form);
  std::shared_ptr<const Program> program = plan_program(roots, leaves, options);
  graph->add(form, program);
  count_planned(*program);
  return program;
}

std::int64_t programs_rebound() noexcept { return rebound().load(std::memory_order_relaxed); }

}  // namespace tenon

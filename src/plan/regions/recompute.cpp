// Chooses which values are recomputed. Element by element, from a group's last item back to its
// first: an item that other groups read need not be stored if each of those groups can recompute
// it, without reading more bytes than the item itself has, and cheaply enough for the device
// (RecomputeTraits). Examples: a normalised activation, recomputed from its input and one mean for
// each row; the slope of an activation function, recomputed from the function's argument.
//
// Recomputation repeats the same arithmetic on the same operands, so results do not change. It does
// not start from variables, because they may be assigned in between.
//
// On a GPU a stored value is also recomputed if the reading kernel already loads everything the
// value is computed from and the arithmetic is small: the mask of an activation function behind a
// normalisation is recomputed from the normalisation's input. Here variables may be sources; their
// assignments then wait for the reader. A mask with one reader costs one byte to write and one byte
// to read. It is recomputed from a 16-bit activation if that activation is stored until then
// anyway, because a weight gradient reads it.
#include "plan/regions/recompute.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/index.h"
#include "ops/table.h"
#include "plan/graph/flat_int_set.h"

namespace tenon {
namespace {

// Items of a group, including recomputed ones, as in grouping.h.
constexpr std::size_t kMostItems = 48;
constexpr std::size_t kLongestRecipe = 24;  // items that recompute one value
constexpr std::int64_t kSmall = 64;  // size ratio from which reading a source is considered free
// Largest OpCost per element at which a stored value is recomputed. A GPU computes this much while
// it waits for memory.
constexpr std::int64_t kFree = 40;
constexpr std::int64_t kFewBytes = 16384;  // smaller values are not recomputed

std::int64_t bytes_of(const Item& item) {
  return item.shape.numel() * static_cast<std::int64_t>(item_size(item.dtype));
}

bool reads(const Item& user, int k) {
  return std::any_of(user.args.begin(), user.args.end(),
                     [k](const Ref& arg) { return arg.item == k; });
}

/// How an item can be recomputed.
struct Recipe {
  FlatIntSet steps;    // items, including the item itself
  FlatIntSet sources;  // items that are read
};

class Recomputer {
 public:
  Recomputer(const Lowered& graph, Fused& fused, const DeviceTraits& traits)
      : g_(graph),
        f_(fused),
        traits_(traits.recompute),
        is_cheap_(traits.recompute.is_cheap),
        assignment_of_(assignments(graph)) {
    made_.resize(f_.groups.size());
    read_.resize(f_.groups.size());
    readers_.resize(g_.items.size());
    for (int g = 0; g < static_cast<int>(f_.groups.size()); ++g)
      for (const int i : f_.groups[at(g)].items)
        for (const Ref& arg : g_.items[at(i)].args)
          if (f_.group_of[at(arg.item)] != g) add_read(g, arg.item);
    if (is_cheap_) depth_ = depths();
  }

  void run() {
    for (int a = 0; a < static_cast<int>(f_.groups.size()); ++a) {
      if (f_.groups[at(a)].kind == RegionKind::Opaque) continue;
      const std::vector<int> items = f_.groups[at(a)].items;
      for (auto it = items.rbegin(); it != items.rend(); ++it)
        if (is_candidate(*it)) drop(*it, a);
    }
    if (is_cheap_)
      for (int b = 0; b < static_cast<int>(f_.groups.size()); ++b)
        for (const int i : worth_recomputing(b)) recompute_instead(b, i);
    for (std::size_t g = 0; g < made_.size(); ++g)
      f_.groups[g].recomputed.assign(made_[g].begin(), made_[g].end());
    drop_unread();
  }

 private:
  void add_read(int group, int item) {
    read_[at(group)].insert(item);
    readers_[at(item)].insert(group);
  }
  bool is_simple(int i) const {
    return g_.items[at(i)].kind == OpKind::Elementwise && f_.role[at(i)] == Role::Element;
  }
  bool is_candidate(int i) const {
    return is_simple(i) && !g_.items[at(i)].wanted && !readers_[at(i)].empty();
  }
  bool is_small(int source, int beside) const {
    return bytes_of(g_.items[at(source)]) * kSmall <= bytes_of(g_.items[at(beside)]);
  }
  /// Whether `i` casts the value `rounded` to float32. If so, `rounded` is the value that is
  /// stored.
  bool is_cast_up(int rounded, int i) const {
    const Item &from = g_.items[at(rounded)], &to = g_.items[at(i)];
    return to.op == Op::Cast && from.op == Op::Cast && is_simple(rounded) &&
           2 * bytes_of(from) <= bytes_of(to);
  }

  /// How item `i` of group `a` is computed from stored values; false if that is not possible.
  bool find(int i, int a, Recipe& recipe, bool with_variables = false) const {
    if (!recipe.steps.insert(i)) return true;
    if (recipe.steps.size() > kLongestRecipe) return false;
    for (const Ref& arg : g_.items[at(i)].args) {
      const int j = arg.item, owner = f_.group_of[at(j)];
      const Item& base = g_.items[at(j)];
      if (base.op == Op::Constant || base.op == Op::Iota) continue;
      if (base.op == Op::Variable && with_variables && may_wait(assignment_of_[at(j)])) {
        recipe.sources.insert(j);
        continue;
      }
      if (base.op == Op::Variable || base.op == Op::Assign || has_several_results(base))
        return false;
      const bool here = owner == a || made_[at(a)].contains(j);
      const bool is_stored = owner < 0 || !readers_[at(j)].empty() || base.wanted;
      // A per-row value is stored from now on.
      const bool of_row = !is_simple(j) && f_.role[at(j)] != Role::Column &&
                          f_.groups[at(a)].contraction != j && base.op != Op::Random;
      if (!here || is_stored || of_row || is_cast_up(j, i))
        recipe.sources.insert(j);
      else if (!is_simple(j) || !find(j, a, recipe, with_variables))
        return false;
    }
    return true;
  }

  /// Whether the kernel with this assignment (-1: none) may run after any other kernel. Nothing may
  /// wait for it. It may not read a variable that another assignment changes, because that
  /// assignment would have to wait for it.
  bool may_wait(int assignment) const {
    if (assignment < 0) return true;
    const int owner = f_.group_of[at(assignment)];
    const std::vector<int>& items = f_.groups[at(owner)].items;
    return std::all_of(items.begin(), items.end(), [&](int i) {
      const std::vector<Ref>& args = g_.items[at(i)].args;
      return readers_[at(i)].empty() && std::all_of(args.begin(), args.end(), [&](const Ref& arg) {
               const int other = assignment_of_[at(arg.item)];
               return other < 0 || f_.group_of[at(other)] == owner;
             });
    });
  }

  /// The items that group b reads and for which recomputation may pay.
  std::vector<int> worth_recomputing(int b) const {
    std::vector<int> items;
    const Group& group = f_.groups[at(b)];
    const bool computes = group.contraction < 0 || group.items.size() > 1;
    if (group.kind == RegionKind::Opaque || !computes) return items;
    for (const int i : read_[at(b)])
      if (is_simple(i) && bytes_of(g_.items[at(i)]) >= kFewBytes) items.push_back(i);
    return items;
  }

  /// Group b recomputes item `i` from its other operands, instead of reading it.
  void recompute_instead(int b, int i) {
    const int a = f_.group_of[at(i)];
    if (a < 0 || a == b) return;
    Recipe recipe;
    if (!find(i, a, recipe, true) || cost_of(recipe) > kFree || !can_make(b, i, recipe, 0)) return;
    // An assigned variable must be read in the order in which its elements are written.
    for (const int source : recipe.sources)
      if (const int own = assignment_of_[at(source)]; own >= 0 && f_.group_of[at(own)] == b) return;
    readers_[at(i)].erase(b);
    read_[at(b)].erase(i);
    made_[at(b)].insert(recipe.steps);
    for (const int source : recipe.sources) add_read(b, source);
  }

  void drop(int i, int a) {
    Recipe recipe;
    const FlatIntSet readers = std::exchange(readers_[at(i)], {});
    bool good = find(i, a, recipe) && cost_of(recipe) <= traits_.most_cost;
    for (const int source : recipe.sources)
      good = good && (!readers_[at(source)].empty() || f_.group_of[at(source)] != a ||
                      is_small(source, i) ||
                      2 * bytes_of(g_.items[at(source)]) <= bytes_of(g_.items[at(i)]));
    const std::int64_t bytes = bytes_of(g_.items[at(i)]);
    std::int64_t most = readers.size() == 1 ? bytes * (1 + traits_.store) : bytes;
    if (good && is_cheap_ && is_mask(i) && readers.size() == 1 && is_kept(recipe, *readers.begin()))
      most = std::max(most, 2 * bytes);
    for (const int b : readers) good = good && can_make(b, i, recipe, most);
    if (!good) {
      readers_[at(i)] = readers;
      return;
    }
    for (const int b : readers) {
      read_[at(b)].erase(i);
      made_[at(b)].insert(recipe.steps);
      for (const int source : recipe.sources) add_read(b, source);
    }
  }

  bool is_mask(int i) const { return g_.items[at(i)].dtype == DType::Bool; }

  /// Whether everything that group b needs to recompute an item stays stored until then anyway,
  /// because a group that is at least as deep in the graph reads it.
  bool is_kept(const Recipe& recipe, int b) const {
    return std::all_of(recipe.sources.begin(), recipe.sources.end(), [&](int source) {
      const FlatIntSet& readers = readers_[at(source)];
      return f_.group_of[at(source)] < 0 || g_.items[at(source)].wanted ||
             std::any_of(readers.begin(), readers.end(),
                         [&](int r) { return depth_[at(r)] >= depth_[at(b)]; });
    });
  }

  /// By group: the length of the longest chain of groups that it waits for.
  std::vector<int> depths() const {
    std::vector<std::vector<int>> after(read_.size());
    std::vector<int> waits(read_.size(), 0), depth(read_.size(), 0), ready;
    for (std::size_t g = 0; g < read_.size(); ++g)
      for (const int i : read_[g])
        if (const int owner = f_.group_of[at(i)]; owner >= 0) {
          after[at(owner)].push_back(static_cast<int>(g));
          ++waits[g];
        }
    for (std::size_t g = 0; g < waits.size(); ++g)
      if (waits[g] == 0) ready.push_back(static_cast<int>(g));
    for (std::size_t k = 0; k < ready.size(); ++k)
      for (const int next : after[at(ready[k])]) {
        depth[at(next)] = std::max(depth[at(next)], depth[at(ready[k])] + 1);
        if (--waits[at(next)] == 0) ready.push_back(next);
      }
    return depth;
  }

  /// Cost per element, in the units of OpCost.
  std::int64_t cost_of(const Recipe& recipe) const {
    std::int64_t cost = 0;
    for (const int step : recipe.steps) cost += op_row(g_.items[at(step)].op).cost.f32;
    return cost;
  }

  /// Whether group b can recompute the item while reading at most `most` additional bytes.
  bool can_make(int b, int i, const Recipe& recipe, std::int64_t most) const {
    const Group& group = f_.groups[at(b)];
    if (group.kind == RegionKind::Opaque || group.row_axes > 1) return false;
    if (group.items.size() + made_[at(b)].size() + recipe.steps.size() > kMostItems) return false;
    if (!takes_in_order(b, i)) return false;
    std::int64_t more = 0;
    for (const int source : recipe.sources)
      if (!read_[at(b)].contains(source) && !is_small(source, i))
        more += bytes_of(g_.items[at(source)]);
    if (more > most) return false;
    // All steps run over the group's own space.
    const bool epilogue = group.contraction >= 0;
    const Shape space = epilogue ? epilogue_space(g_.items[at(group.contraction)]) : group.space;
    std::int64_t scratch[kMaxRank];
    for (const int step : recipe.steps) {
      const Item& item = g_.items[at(step)];
      if (epilogue ? item.shape.numel() != space.numel() : item.shape != space) return false;
      for (const Ref& arg : item.args) {
        if (g_.items[at(arg.item)].op == Op::Constant) continue;
        if (!reshape_strides(arg.shape, arg.stride, space, scratch)) return false;
        const bool made = made_[at(b)].contains(arg.item) || recipe.steps.contains(arg.item);
        if (made && !is_in_order(arg)) return false;
      }
    }
    return true;
  }

  bool is_in_order(const Ref& arg) const {
    const Shape& shape = g_.items[at(arg.item)].shape;
    return arg.shape == shape && is_linear(arg, shape);
  }
  /// Whether everything in group b that uses item `i` uses it element by element, and no product
  /// uses it.
  bool takes_in_order(int b, int i) const {
    const auto in_order = [&](int user) {
      const Item& item = g_.items[at(user)];
      return std::all_of(item.args.begin(), item.args.end(),
                         [&](const Ref& arg) { return arg.item != i || is_in_order(arg); });
    };
    const Group& group = f_.groups[at(b)];
    for (const int user : group.items)
      if (reads(g_.items[at(user)], i) &&
          (user == group.contraction || f_.role[at(user)] == Role::PerRow || !in_order(user)))
        return false;
    return std::all_of(made_[at(b)].begin(), made_[at(b)].end(), in_order);
  }

  /// Removes epilogue items whose only readers now recompute them. The product may then have no
  /// epilogue at all.
  void drop_unread() {
    const std::vector<char> outside = read_outside(g_, f_);
    for (Group& group : f_.groups) {
      if (group.contraction < 0) continue;
      std::vector<int> all = group.items;
      all.insert(all.end(), group.recomputed.begin(), group.recomputed.end());
      std::sort(all.begin(), all.end());
      FlatIntSet read;  // items that the remaining items read
      for (auto i = all.rbegin(); i != all.rend(); ++i) {
        const Item& item = g_.items[at(*i)];
        const bool is_own =
            !std::binary_search(group.recomputed.begin(), group.recomputed.end(), *i);
        if (!is_simple(*i) || (is_own && (item.wanted || outside[at(*i)] != 0)) ||
            read.contains(*i)) {
          for (const Ref& arg : item.args) read.insert(arg.item);
          continue;
        }
        std::vector<int>& list = is_own ? group.items : group.recomputed;
        list.erase(std::find(list.begin(), list.end(), *i));
      }
    }
  }

  const Lowered& g_;
  Fused& f_;
  const RecomputeTraits traits_;
  const bool is_cheap_;
  const std::vector<int> assignment_of_;  // by item
  std::vector<FlatIntSet> made_, read_;   // by group: items recomputed there, items read
  std::vector<FlatIntSet> readers_;       // other groups that read it, by item
  std::vector<int> depth_;                // by group, on a GPU
};

}  // namespace

void recompute_values(const Lowered& graph, Fused& fused, const DeviceTraits& traits) {
  Recomputer(graph, fused, traits).run();
}

std::vector<int> assignments(const Lowered& graph) {
  std::vector<int> assignment(graph.items.size(), -1);
  for (std::size_t k = 0; k < graph.items.size(); ++k)
    if (graph.items[k].target >= 0) assignment[at(graph.items[k].target)] = static_cast<int>(k);
  return assignment;
}

std::vector<char> read_outside(const Lowered& graph, const Fused& fused) {
  std::vector<char> outside(graph.items.size(), 0);
  for (std::size_t g = 0; g < fused.groups.size(); ++g) {
    const std::vector<int>& recomputed = fused.groups[g].recomputed;
    const auto look = [&](int i) {
      for (const Ref& arg : graph.items[at(i)].args)
        if (fused.group_of[at(arg.item)] != static_cast<int>(g) &&
            !std::binary_search(recomputed.begin(), recomputed.end(), arg.item))
          outside[at(arg.item)] = 1;
    };
    for (const int i : fused.groups[g].items) look(i);
    for (const int i : recomputed) look(i);
  }
  return outside;
}

}  // namespace tenon

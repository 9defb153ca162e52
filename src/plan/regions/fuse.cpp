// Greedy fusion in topological order. An item joins the groups of its arguments if three conditions
// hold: the item iterates over the same space; it reads the arguments element by element (or row by
// row); no path leaves the merged group and comes back to it. Then epilogues.h and sink.h move
// items between the groups.
#include "plan/regions/fuse.h"

#include <algorithm>
#include <utility>

#include "base/contains.h"
#include "base/index.h"
#include "base/str.h"
#include "ops/table.h"
#include "plan/regions/epilogues.h"
#include "plan/regions/grouping.h"
#include "plan/regions/rows.h"
#include "plan/regions/sink.h"

namespace tenon {
namespace {

// Longer rows do not stay in cache. On a GPU, where one thread block handles one row, they leave
// blocks idle.
// A full reduction of at most this many elements is one row.
constexpr std::int64_t kMaxWholeRow = 4096;

// Whether an activation is rounded to 16 bits and cast up. It is stored in 16 bits, and each reader
// casts it to float32.
bool upcasts(const Item& wide, const Item& rounded) {
  return wide.op == Op::Cast && rounded.op == Op::Cast && item_size(rounded.dtype) == 2 &&
         item_size(wide.dtype) > 2 && is_floating(rounded.dtype);
}

class Fuser {
 public:
  Fuser(const Lowered& graph, const PlanOptions& options, PassTally& tally)
      : options_(options),
        tally_(tally),
        groups_(graph, options.enabled(kFuse)),
        on_(options.enabled(kFuse)) {}

  Fused run() {
    for (int k = 0; k < groups_.item_count(); ++k) place(k);
    run_after(kEpilogue, [this] { return attach_epilogues(groups_); });
    if (options_.traits.launches_kernels) run_after(kColumnSums, [this] { return join_columns(); });
    run_after(kSink, [this] { return sink(groups_); });
    return groups_.take();
  }

 private:
  template <class F>
  void run_after(PassId pass, F&& f) {
    if (on_ && options_.enabled(pass))
      tally_.count(pass, tally_.timed(pass, std::forward<F>(f), 0));
  }

  void place(int k) {
    const Item& item = groups_.item(k);
    // A number that is a requested result needs a kernel that writes it: lower() has inserted a
    // copy.
    if (item.kind == OpKind::Leaf && item.op != Op::Random) return;
    if (item.kind == OpKind::Contraction) {
      groups_.open(k, RegionKind::Contraction).contraction = k;
      return;
    }
    if (item.kind == OpKind::Result) return groups_.add(groups_.owner(item.args[0].item), k);
    if (!is_map(item)) {
      groups_.open(k, RegionKind::Opaque);
      return;
    }
    Group& own = groups_.open(k, RegionKind::Map);
    own.space = reduces(item) ? item.args[0].shape : item.shape;
    if (reduces(item)) classify_reduction(k, own);
    if (!on_) return;
    for (const Ref& arg : item.args) try_join(k, arg);
    if (item.deviations) join_sum(k);
  }

  // The sum of a value and the sum of its squared deviations are computed in one loop nest,
  // whichever group computes the value.
  void join_sum(int k) {
    const Ref& arg = groups_.item(k).args[0];
    for (const int other : groups_.item(arg.item).users) {
      if (other == k || groups_.owner(other) < 0 || groups_.role(other) != Role::Column) continue;
      const Item& sum = groups_.item(other);
      const bool same = sum.op == Op::Sum && sum.args[0].shape == arg.shape &&
                        std::equal(arg.stride, arg.stride + arg.shape.rank(), sum.args[0].stride) &&
                        sum.args[0].offset == arg.offset && sum.attrs == groups_.item(k).attrs;
      if (same && groups_.group_of(other).space == groups_.group_of(k).space &&
          groups_.owner(other) != groups_.owner(k))
        return merge(k, other, false);
    }
  }

  void classify_reduction(int k, Group& own) {
    const Item& item = groups_.item(k);
    const int axes = trailing_axes(item);
    const std::int64_t row = trailing_numel(own.space, axes);
    const bool everything = axes == own.space.rank() || row == own.space.numel();
    const std::int64_t most = everything ? kMaxWholeRow : options_.traits.longest_row;
    const bool fits = row <= most;
    if (axes > 0) groups_.add_limit({row, most});
    const bool row_kind = item.kind == OpKind::ArgReduction ||
                          (axes > 0 && fits && !item.deviations && row_merges(item.args[0], axes));
    groups_.role(k) = row_kind ? Role::RowReduce : Role::Column;
    if (row_kind) own.row_axes = axes;
  }

  // Whether the group reads a contraction element by element. If so, its column sums get a loop
  // nest of their own, so that the rest can become the contraction's epilogue.
  bool fed_by_contraction(const Group& grp) const {
    for (int k : grp.items)
      for (const Ref& arg : groups_.item(k).args) {
        const Item& base = groups_.item(arg.item);
        if (base.kind == OpKind::Contraction && base.dtype == DType::Float32 &&
            is_linear(arg, base.shape) && arg.shape.numel() == grp.space.numel())
          return true;
      }
    return false;
  }

  void try_join(int k, const Ref& arg) {
    const int base = arg.item;
    if (groups_.owner(base) < 0 || groups_.owner(base) == groups_.owner(k)) return;
    Group& theirs = groups_.group_of(base);
    Group& ours = groups_.group_of(k);
    if (theirs.kind != RegionKind::Map) {
      if (theirs.kind == RegionKind::Opaque) note_stop(k, base, "runs as a step of its own");
      return;
    }
    if (groups_.stores_rounded() && upcasts(groups_.item(k), groups_.item(base)))
      return note_stop(k, base, "rounds an activation, which is stored rounded");
    if (options_.traits.stores_16_bits && upcasts(groups_.item(k), groups_.item(base)) &&
        is_of_scores(k))
      return note_stop(k, base, "rounds scores, which are stored rounded");
    if (groups_.role(base) == Role::Column) {
      note_stop(k, base,
                "reduces over outer axes: its result is complete only after its whole loop nest");
      return;
    }
    const Item& base_item = groups_.item(base);
    bool per_row = false;
    const bool base_per_row =
        groups_.role(base) == Role::RowReduce || groups_.role(base) == Role::PerRow;
    if (base_per_row) {
      per_row = is_linear(arg, base_item.shape) && may_be_per_row(ours, theirs);
      if (!per_row && !(ours.space == theirs.space &&
                        reads_rows(arg, base_item.shape, theirs.space, theirs.row_axes)))
        return note_stop(k, base, "computes one value per row, which is read in another pattern");
      if (base_item.shape.numel() == 1 && would_keep_others(base, k))
        return note_stop(k, base, "is one value, and its other readers would wait longer");
    } else if (!(ours.space == theirs.space && identity(arg, base_item.shape))) {
      return note_stop(k, base,
                       ours.space == theirs.space
                           ? "is read in another order"
                           : cat("iterates over ", theirs.space, ", not ", ours.space));
    }
    if (groups_.role(k) == Role::Column && theirs.row_axes == 0 && fed_by_contraction(theirs)) {
      note_stop(k, base, "stays element-wise, to be the epilogue of a contraction");
      return;
    }
    merge(k, base, per_row);
  }

  // Whether a maximum over the item's rows is taken. The epilogue of a matrix product has no rows,
  // so the group with the rows would have to do the rounding.
  bool is_of_scores(int item) const {
    const auto& users = groups_.item(item).users;
    return std::any_of(users.begin(), users.end(),
                       [this](int user) { return groups_.item(user).op == Op::Max; });
  }

  // Whether other groups read the item and would have to wait for more groups if its group also
  // contained the group of k.
  bool would_keep_others(int item, int k) const {
    const int a = groups_.owner(item), b = groups_.owner(k);
    const auto elsewhere = [&](int user) {
      return groups_.owner(user) != a && groups_.owner(user) != b;
    };
    const auto& users = groups_.item(item).users;
    if (std::none_of(users.begin(), users.end(), elsewhere)) return false;
    const std::vector<int> waited = groups_before(a), more = groups_before(b);
    return std::any_of(more.begin(), more.end(),
                       [&](int g) { return g != a && !contains(waited, g); });
  }

  std::vector<int> groups_before(int group_number) const {
    std::vector<int> before;
    for (int i : groups_.group(group_number).items)
      for (const Ref& arg : groups_.item(i).args)
        if (const int owner = groups_.owner(arg.item); owner >= 0 && owner != group_number)
          before.push_back(owner);
    return before;
  }

  // Whether a whole group of element-wise items over the rows can move into the loop nest that
  // computes the rows' values.
  bool may_be_per_row(const Group& ours, const Group& theirs) const {
    if (ours.row_axes != 0 || theirs.row_axes == 0) return false;
    if (!same_but_ones(ours.space, row_shape(theirs.space, theirs.row_axes))) return false;
    for (int i : ours.items)
      if (groups_.role(i) != Role::Element || groups_.item(i).op == Op::Random) return false;
    return ours.space != theirs.space;
  }

  // The role of an item after the group with this number (-1: none) has become one value per row.
  Role role_after(int item, int per_row) const {
    return groups_.owner(item) == per_row ? Role::PerRow : groups_.role(item);
  }

  // Every value that group a reads from group b, or b from a, must be available when the shared
  // loop nest reaches the item.
  bool edges_allow(int a, int b, int per_row, const Shape& space, int rows) const {
    for (int side : {a, b})
      for (int i : groups_.group(side).items)
        for (const Ref& arg : groups_.item(i).args) {
          const int owner = groups_.owner(arg.item);
          if (owner != a && owner != b) continue;
          const Item& base = groups_.item(arg.item);
          const Role base_role = role_after(arg.item, per_row);
          const bool user_per_row = role_after(i, per_row) == Role::PerRow;
          bool at_hand = false;
          if (base_role == Role::Element) {
            at_hand = !user_per_row && base.shape == space && identity(arg, space);
          } else if (base_role != Role::Column) {
            at_hand = same_but_ones(base.shape, row_shape(space, rows)) &&
                      (user_per_row ? is_linear(arg, base.shape)
                                    : reads_rows(arg, base.shape, space, rows));
          }
          if (!at_hand) return false;
        }
    return true;
  }

  void note_stop(int k, int base, const std::string& reason) {
    groups_.note(groups_.owner(k),
                 cat("apart from ", item_title(groups_.item(base)), ": it ", reason));
  }

  void merge(int k, int base, bool per_row) {
    const int a = groups_.owner(base), b = groups_.owner(k);
    Group &theirs = groups_.group(a), &ours = groups_.group(b);
    const int rows = std::max(theirs.row_axes, ours.row_axes);
    if (theirs.row_axes != 0 && ours.row_axes != 0 && theirs.row_axes != ours.row_axes)
      return note_stop(k, base, "reduces rows of another length");
    if (theirs.items.size() + ours.items.size() > kMaxItems)
      return note_stop(k, base, cat("would make more than ", kMaxItems, " instructions"));
    if (rows > 1)
      for (const Group* side : {&theirs, &ours})
        for (int i : side->items) {
          if (groups_.role(i) == Role::Column && splits_rows(groups_.item(i), rows))
            return note_stop(k, base, "reduces some axes of a row and not others");
          for (const Ref& arg : groups_.item(i).args)
            if (arg.shape == theirs.space && !row_merges(arg, rows) && groups_.external(arg, a, b))
              return note_stop(k, base, "has rows that are not contiguous in memory");
        }
    if (!groups_.assignments_allow(a, b))
      return note_stop(k, base, "reads a variable, which this loop nest assigns, in another order");
    if (!edges_allow(a, b, per_row ? b : -1, theirs.space, rows))
      return note_stop(k, base, "is also read in another pattern");
    if (!groups_.make_adjacent(base, k))
      return note_stop(k, base, "is also reached by a path through other groups");
    theirs.row_axes = rows;
    if (per_row)
      for (int i : ours.items) groups_.role(i) = Role::PerRow;
    groups_.absorb(a, b);
  }

  // Column sums over values that a contraction's epilogue stores go into one loop nest. That loop
  // nest may then recompute a stored product from what it reads anyway (recompute.h). Returns the
  // number of sums that joined others.
  int join_columns() {
    int count = 0;
    for (int k = 0; k < groups_.item_count(); ++k)
      if (groups_.item(k).kind == OpKind::Contraction) count += join_columns_behind(k);
    return count;
  }

  int join_columns_behind(int contraction) {
    int first = -1, count = 0;
    for (const int i : std::vector<int>(groups_.group_of(contraction).items))
      for (const int user : groups_.item(i).users) {
        const int b = groups_.owner(user);
        if (b < 0 || b == groups_.owner(contraction) || !sums_columns_alone(groups_.group(b)))
          continue;
        if (first < 0) {
          first = user;
        } else if (b != groups_.owner(first) && sums_alike(first, user)) {
          merge(user, first, false);
          count += groups_.owner(user) == groups_.owner(first) ? 1 : 0;
        }
      }
    return count;
  }

  /// Whether two column sums have the same space and sum over the same axes of it.
  bool sums_alike(int a, int b) const {
    return groups_.group(groups_.owner(a)).space == groups_.group(groups_.owner(b)).space &&
           reduced_axes(a) == reduced_axes(b);
  }

  bool sums_columns_alone(const Group& grp) const {
    return grp.kind == RegionKind::Map && grp.row_axes == 0 &&
           std::all_of(grp.items.begin(), grp.items.end(),
                       [this](int i) { return groups_.role(i) == Role::Column; });
  }
  std::int64_t reduced_axes(int item) const {
    return groups_.item(item).attrs.as<ReduceAttrs>().axes;
  }

  const PlanOptions& options_;
  PassTally& tally_;
  Grouping groups_;
  const bool on_;
};

}  // namespace

Fused fuse(const Lowered& graph, const PlanOptions& options, PassTally& tally) {
  return Fuser(graph, options, tally).run();
}

}  // namespace tenon

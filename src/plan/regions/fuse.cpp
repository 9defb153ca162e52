// Greedy fusion in topological order. An item joins the groups of its arguments if three conditions
// hold: the item iterates over the same space; it reads the arguments element by element (or row by
// row); no path leaves the merged group and comes back to it.
#include "plan/regions/fuse.h"

#include <algorithm>
#include <utility>

#include "base/contains.h"
#include "base/index.h"
#include "base/str.h"
#include "ops/table.h"
#include "plan/graph/plan_graph.h"

namespace tenon {
namespace {

constexpr std::size_t kMaxItems = 48;  // bounds the tile registers of a region
// Longer rows do not stay in cache. On a GPU, where one thread block handles one row, they leave
// blocks idle.
constexpr std::int64_t kMaxWholeRow = 4096;  // a reduction of everything this small is one row

bool is_map(const Item& item) {
  return item.kind == OpKind::Elementwise || item.kind == OpKind::Reduction ||
         item.kind == OpKind::ArgReduction || item.kind == OpKind::Effect || item.op == Op::Random;
}

bool reduces(const Item& item) {
  return item.kind == OpKind::Reduction || item.kind == OpKind::ArgReduction;
}

// The number of trailing axes that a reduction removes; 0 if the removed axes are not trailing.
int trailing_axes(const Item& item) {
  const int rank = item.args[0].shape.rank();
  if (item.kind == OpKind::ArgReduction) return 1;
  const auto mask = static_cast<std::uint64_t>(item.attrs.as<ReduceAttrs>().axes);
  int count = 0;
  while (count < rank && (mask >> (rank - 1 - count) & 1u)) ++count;
  const std::uint64_t trailing = ((std::uint64_t{1} << count) - 1) << (rank - count);
  return mask == trailing ? count : 0;
}

std::int64_t trailing_numel(const Shape& shape, int axes) {
  std::int64_t n = 1;
  for (int d = shape.rank() - axes; d < shape.rank(); ++d) n *= shape[d];
  return n;
}

Shape row_shape(Shape space, int axes) {
  for (int d = space.rank() - axes; d < space.rank(); ++d) space[d] = 1;
  return space;
}

// Whether two shapes have the same elements in the same order, apart from axes of size 1: [64] and
// [64, 1].
bool same_but_ones(const Shape& a, const Shape& b) {
  int i = 0, j = 0;
  while (true) {
    while (i < a.rank() && a[i] == 1) ++i;
    while (j < b.rank() && b[j] == 1) ++j;
    if (i == a.rank() || j == b.rank()) return i == a.rank() && j == b.rank();
    if (a[i++] != b[j++]) return false;
  }
}

bool identity(const Ref& ref, const Shape& base) {
  return ref.shape == base && is_linear(ref, base);
}

// Whether the reference reads one value for each row of `space`, from a base that holds one value
// for each row.
bool reads_rows(const Ref& ref, const Shape& base, const Shape& space, int row_axes) {
  const Shape rows = row_shape(space, row_axes);
  if (ref.offset != 0 || ref.shape != space || !same_but_ones(base, rows)) return false;
  std::int64_t want[kMaxRank];
  contiguous_strides(rows, want);
  for (int d = 0; d < space.rank(); ++d) {
    const bool in_row = d >= space.rank() - row_axes;
    if (space[d] != 1 && ref.stride[d] != (in_row ? 0 : want[d])) return false;
  }
  return true;
}

// Whether the axes of a row can be merged into one axis.
bool row_merges(const Ref& ref, int row_axes) {
  const int rank = ref.shape.rank();
  int inner = -1;  // the next inner axis that is not of size 1; axes of size 1 may have any stride
  for (int d = rank - 1; d >= rank - row_axes; --d) {
    if (ref.shape[d] == 1) continue;
    if (inner >= 0 && ref.stride[d] != ref.stride[inner] * ref.shape[inner]) return false;
    inner = d;
  }
  return true;
}

class Fuser {
 public:
  Fuser(const Lowered& graph, const PlanOptions& options)
      : g_(graph),
        waits_(static_cast<int>(graph.items.size())),
        on_(options.enabled(kFuse)),
        on_gpu_(options.traits.is_queued),
        max_row_(options.traits.longest_row) {
    out_.groups.reserve(g_.items.size());
    out_.group_of.assign(g_.items.size(), -1);
    out_.role.assign(g_.items.size(), Role::Element);
    if (!on_) return;
    for (int k = 0; k < static_cast<int>(g_.items.size()); ++k) {
      for (const Ref& arg : g_.items[k].args)
        if (!g_.items[arg.item].args.empty()) waits_.add_edge(arg.item, k);  // not leaves
      for (int before : g_.items[k].after) waits_.add_edge(before, k);
    }
    waits_.sort();
  }

  Fused run() {
    for (int k = 0; k < static_cast<int>(g_.items.size()); ++k) place(k);
    if (on_)
      for (int k = 0; k < static_cast<int>(g_.items.size()); ++k)
        if (g_.items[k].kind == OpKind::Contraction) attach_epilogue(k);
    if (on_ && on_gpu_)
      for (int k = 0; k < static_cast<int>(g_.items.size()); ++k)
        if (g_.items[k].kind == OpKind::Contraction) join_columns(k);
    if (on_) sink();
    drop_empty();
    return std::move(out_);
  }

 private:
  Group& group(int item) { return out_.groups[out_.group_of[item]]; }

  int open(int k, RegionKind kind) {
    Group fresh;
    fresh.kind = kind;
    fresh.items.push_back(k);
    out_.groups.push_back(std::move(fresh));
    return out_.group_of[k] = static_cast<int>(out_.groups.size()) - 1;
  }

  void place(int k) {
    const Item& item = g_.items[k];
    if ((item.kind == OpKind::Leaf && item.op != Op::Random)) {
      // A number that is requested as a result needs a kernel that writes it; lower() has inserted
      // a copy.
      return;
    }
    if (item.kind == OpKind::Contraction) {
      open(k, RegionKind::Contraction);
      group(k).contraction = k;
      return;
    }
    if (item.kind == OpKind::Result) {
      const int owner = out_.group_of[k] = out_.group_of[item.args[0].item];
      out_.groups[owner].items.push_back(k);
      return;
    }
    if (!is_map(item)) {
      open(k, RegionKind::Opaque);
      return;
    }
    open(k, RegionKind::Map);
    Group& own = group(k);
    own.space = reduces(item) ? item.args[0].shape : item.shape;
    if (reduces(item)) classify_reduction(k, own);
    if (!on_) return;
    for (const Ref& arg : item.args) try_join(k, arg);
    if (item.deviations) join_sum(k);
  }

  // The sum of a value and the sum of its squared deviations go into one loop nest, whichever group
  // computes the value.
  void join_sum(int k) {
    const Ref& arg = g_.items[k].args[0];
    for (const int other : g_.items[arg.item].users) {
      if (other == k || out_.group_of[other] < 0 || out_.role[other] != Role::Column) continue;
      const Item& sum = g_.items[other];
      const bool same = sum.op == Op::Sum && sum.args[0].shape == arg.shape &&
                        std::equal(arg.stride, arg.stride + arg.shape.rank(), sum.args[0].stride) &&
                        sum.args[0].offset == arg.offset && sum.attrs == g_.items[k].attrs;
      if (same && group(other).space == group(k).space && out_.group_of[other] != out_.group_of[k])
        return merge(k, other, false);
    }
  }

  void classify_reduction(int k, Group& own) {
    const Item& item = g_.items[k];
    const int axes = trailing_axes(item);
    const std::int64_t row = trailing_numel(own.space, axes);
    const bool everything = axes == own.space.rank() || row == own.space.numel();
    const std::int64_t most = everything ? kMaxWholeRow : max_row_;
    const bool fits = row <= most;
    if (axes > 0) out_.limits.push_back({row, most});
    const bool row_kind = item.kind == OpKind::ArgReduction ||
                          (axes > 0 && fits && !item.deviations && row_merges(item.args[0], axes));
    out_.role[k] = row_kind ? Role::RowReduce : Role::Column;
    if (row_kind) own.row_axes = axes;
  }

  void group_note(int index, std::string text) {
    if (!text.empty()) out_.groups[index].notes.push_back(std::move(text));
  }

  // Whether the group reads a contraction element by element. If so, its column sums get a loop
  // nest of their own, so that the rest can become the contraction's epilogue.
  bool fed_by_contraction(const Group& grp) const {
    for (int k : grp.items)
      for (const Ref& arg : g_.items[k].args) {
        const Item& base = g_.items[arg.item];
        if (base.kind == OpKind::Contraction && base.dtype == DType::Float32 &&
            is_linear(arg, base.shape) && arg.shape.numel() == grp.space.numel())
          return true;
      }
    return false;
  }

  void try_join(int k, const Ref& arg) {
    const int base = arg.item;
    if (out_.group_of[base] < 0 || out_.group_of[base] == out_.group_of[k]) return;
    Group& theirs = group(base);
    Group& ours = group(k);
    if (theirs.kind != RegionKind::Map) {
      if (theirs.kind == RegionKind::Opaque) note_stop(k, base, "runs as a step of its own");
      return;
    }
    if (g_.stores_rounded && upcasts(k, base))
      return note_stop(k, base, "rounds an activation, which is stored rounded");
    if (on_gpu_ && upcasts(k, base) && is_of_scores(k))
      return note_stop(k, base, "rounds scores, which are stored rounded");
    if (out_.role[base] == Role::Column) {
      note_stop(k, base,
                "reduces over outer axes: its result is complete only after its whole loop nest");
      return;
    }
    const Item& base_item = g_.items[base];
    bool per_row = false;
    const bool base_per_row = out_.role[base] == Role::RowReduce || out_.role[base] == Role::PerRow;
    if (base_per_row) {
      per_row = is_linear(arg, base_item.shape) && may_be_per_row(ours, theirs);
      if (!per_row && !(ours.space == theirs.space &&
                        reads_rows(arg, base_item.shape, theirs.space, theirs.row_axes)))
        return note_stop(k, base, "gives one value a row, which is read in another pattern");
      if (base_item.shape.numel() == 1 && would_keep_others(base, k))
        return note_stop(k, base, "is one value, and its other readers would wait longer");
    } else if (!(ours.space == theirs.space && identity(arg, base_item.shape))) {
      return note_stop(k, base,
                       ours.space == theirs.space
                           ? "is read in another order"
                           : cat("iterates over ", theirs.space, ", not ", ours.space));
    }
    if (out_.role[k] == Role::Column && theirs.row_axes == 0 && fed_by_contraction(theirs)) {
      note_stop(k, base, "stays element-wise, to be the epilogue of a contraction");
      return;
    }
    merge(k, base, per_row);
  }

  // An activation that is rounded to 16 bits is stored in 16 bits, and each reader casts it to
  // float32.
  bool upcasts(int k, int base) const {
    const Item &wide = g_.items[k], &rounded = g_.items[base];
    return wide.op == Op::Cast && rounded.op == Op::Cast && item_size(rounded.dtype) == 2 &&
           item_size(wide.dtype) > 2 && is_floating(rounded.dtype);
  }

  // Whether a maximum over the item's rows is taken. The epilogue of a matrix product has no rows,
  // so the group with the rows would have to do the rounding.
  bool is_of_scores(int item) const {
    const auto& users = g_.items[item].users;
    return std::any_of(users.begin(), users.end(),
                       [this](int user) { return g_.items[user].op == Op::Max; });
  }

  // Whether other groups read the item and would wait longer if its group contained the group of k.
  bool would_keep_others(int item, int k) const {
    const int a = out_.group_of[item], b = out_.group_of[k];
    const auto elsewhere = [&](int user) {
      return out_.group_of[user] != a && out_.group_of[user] != b;
    };
    const auto& users = g_.items[item].users;
    if (std::none_of(users.begin(), users.end(), elsewhere)) return false;
    const std::vector<int> waited = groups_before(a), more = groups_before(b);
    return std::any_of(more.begin(), more.end(),
                       [&](int g) { return g != a && !contains(waited, g); });
  }

  std::vector<int> groups_before(int group_number) const {
    std::vector<int> before;
    for (int i : out_.groups[group_number].items)
      for (const Ref& arg : g_.items[i].args)
        if (const int owner = out_.group_of[arg.item]; owner >= 0 && owner != group_number)
          before.push_back(owner);
    return before;
  }

  // Whether a whole group of element-wise items over the rows can move into the loop nest that
  // computes the rows' values.
  bool may_be_per_row(const Group& ours, const Group& theirs) const {
    if (ours.row_axes != 0 || theirs.row_axes == 0) return false;
    if (!same_but_ones(ours.space, row_shape(theirs.space, theirs.row_axes))) return false;
    for (int i : ours.items)
      if (out_.role[i] != Role::Element || g_.items[i].op == Op::Random) return false;
    return ours.space != theirs.space;
  }

  // The role of an item once the group with this number (-1: none) computes one value for each row.
  Role role_after(int item, int per_row) const {
    return out_.group_of[item] == per_row ? Role::PerRow : out_.role[item];
  }

  // Every argument that one side takes from the other must be available when the loop nest reaches
  // the item.
  bool edges_allow(int a, int b, int per_row, const Shape& space, int rows) const {
    for (int side : {a, b})
      for (int i : out_.groups[side].items)
        for (const Ref& arg : g_.items[i].args) {
          const int owner = out_.group_of[arg.item];
          if (owner != a && owner != b) continue;
          const Item& base = g_.items[arg.item];
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
    group_note(out_.group_of[k], cat("apart from ", item_title(g_.items[base]), ": it ", reason));
  }

  void merge(int k, int base, bool per_row) {
    const int a = out_.group_of[base], b = out_.group_of[k];
    Group &theirs = out_.groups[a], &ours = out_.groups[b];
    const int rows = std::max(theirs.row_axes, ours.row_axes);
    if (theirs.row_axes != 0 && ours.row_axes != 0 && theirs.row_axes != ours.row_axes)
      return note_stop(k, base, "reduces rows of another length");
    if (theirs.items.size() + ours.items.size() > kMaxItems)
      return note_stop(k, base, cat("would make more than ", kMaxItems, " instructions"));
    if (rows > 1)
      for (const Group* side : {&theirs, &ours})
        for (int i : side->items) {
          if (out_.role[i] == Role::Column && splits_rows(g_.items[i], rows))
            return note_stop(k, base, "reduces some axes of a row and not others");
          for (const Ref& arg : g_.items[i].args)
            if (arg.shape == theirs.space && !row_merges(arg, rows) && external(arg, a, b))
              return note_stop(k, base, "has rows that lie scattered in memory");
        }
    if (!assignments_allow(a, b))
      return note_stop(k, base, "reads a variable, which this loop nest assigns, in another order");
    if (!edges_allow(a, b, per_row ? b : -1, theirs.space, rows))
      return note_stop(k, base, "is also read in another pattern");
    if (!waits_.merge(waits_.node(base), waits_.node(k)))
      return note_stop(k, base, "is also reached by a path through other groups");
    theirs.row_axes = rows;
    for (int i : ours.items) {
      if (per_row) out_.role[i] = Role::PerRow;
      out_.group_of[i] = a;
      theirs.items.push_back(i);
    }
    std::sort(theirs.items.begin(), theirs.items.end());
    for (std::string& n : ours.notes) theirs.notes.push_back(std::move(n));
    ours = Group{};
  }

  // Whether a column reduction treats the axes of a row differently. The row could then not be one
  // axis.
  static bool splits_rows(const Item& reduction, int rows) {
    const int rank = reduction.args[0].shape.rank();
    const std::int64_t all = (std::int64_t{1} << rows) - 1;
    const std::int64_t reduced = reduction.attrs.as<ReduceAttrs>().axes >> (rank - rows) & all;
    return reduced != 0 && reduced != all;
  }

  bool external(const Ref& arg, int a, int b) const {
    const int owner = out_.group_of[arg.item];
    return owner != a && owner != b && g_.items[arg.item].op != Op::Constant;
  }

  // An assignment may share a loop nest with reads of its variable only if they read exactly the
  // element that the assignment writes.
  bool assignments_allow(int a, int b) const {
    for (int side : {a, b})
      for (int i : out_.groups[side].items) {
        const Item& item = g_.items[i];
        if (item.op != Op::Assign) continue;
        for (int other : {a, b})
          for (int j : out_.groups[other].items)
            for (const Ref& arg : g_.items[j].args)
              if (arg.item == item.target &&
                  (!is_map(g_.items[j]) || !identity(arg, g_.items[item.target].shape)))
                return false;
      }
    return true;
  }

  void attach_epilogue(int c) {
    const Item& contraction = g_.items[c];
    const Shape space = epilogue_space(contraction);
    for (int user : contraction.users) {
      const int b = out_.group_of[user];
      if (b < 0 || out_.groups[b].kind != RegionKind::Map) continue;
      const int a = out_.group_of[c];
      const std::string refusal = epilogue_refusal(c, b, space);
      if (!refusal.empty()) {
        group_note(a, cat("no element-wise epilogue ", item_title(g_.items[user]), ": ", refusal));
        continue;
      }
      Group &theirs = out_.groups[a], &ours = out_.groups[b];
      for (int i : ours.items) {
        out_.group_of[i] = a;
        theirs.items.push_back(i);
      }
      std::sort(theirs.items.begin(), theirs.items.end());
      theirs.space = ours.space;
      for (std::string& n : ours.notes) theirs.notes.push_back(std::move(n));
      ours = Group{};
      return;
    }
  }

  // Empty if the group can become the epilogue; the two are then adjacent in the order.
  std::string epilogue_refusal(int c, int b, const Shape& space) {
    const Group& grp = out_.groups[b];
    const Item& contraction = g_.items[c];
    if (contraction.dtype != DType::Float32)
      return cat("a result of ", contraction.dtype, " has none");
    if (grp.row_axes != 0) return "it reduces rows";
    if (grp.space.numel() != contraction.shape.numel()) return "it iterates over another space";
    std::int64_t scratch[kMaxRank];
    for (int i : grp.items) {
      const Item& item = g_.items[i];
      if (out_.role[i] != Role::Element) return "it reduces";
      if (item.op == Op::Random) return "it draws random numbers";
      for (const Ref& arg : item.args) {
        if (arg.item == c) {
          if (!is_linear(arg, contraction.shape)) return "it reads the result in another order";
        } else if (out_.group_of[arg.item] != b && g_.items[arg.item].op != Op::Constant &&
                   !reshape_strides(arg.shape, arg.stride, space, scratch)) {
          return "an argument has no strides over [batch, rows, columns]";
        }
      }
    }
    const int a = out_.group_of[c];
    if (!assignments_allow(a, b)) return "the contraction reads the variable that it assigns";
    if (!waits_.merge(waits_.node(c), waits_.node(grp.items[0])))
      return "it needs a result that depends on this contraction";
    return "";
  }

  // Column sums over values that a contraction's epilogue stores go into one loop nest. That loop
  // nest may then recompute a stored product from what it reads anyway (remake.h).
  void join_columns(int c) {
    int first = -1;
    for (const int i : std::vector<int>(group(c).items))
      for (const int user : g_.items[i].users) {
        const int b = out_.group_of[user];
        if (b < 0 || b == out_.group_of[c] || !sums_columns_alone(out_.groups[b])) continue;
        if (first < 0) {
          first = user;
        } else if (b != out_.group_of[first] && group(first).space == group(user).space &&
                   reduced_axes(first) == reduced_axes(user)) {
          merge(user, first, false);
        }
      }
  }

  bool sums_columns_alone(const Group& grp) const {
    return grp.kind == RegionKind::Map && grp.row_axes == 0 &&
           std::all_of(grp.items.begin(), grp.items.end(),
                       [this](int i) { return out_.role[i] == Role::Column; });
  }
  std::int64_t reduced_axes(int item) const { return g_.items[item].attrs.as<ReduceAttrs>().axes; }

  // A result with only one later reader moves to that reader if it is cheap to recompute from
  // values that are stored anyway (1 - y*y beside y). The greedy walk had put it where its
  // arguments are computed.
  void sink() {
    std::vector<int> listed(out_.groups.size(), -1);  // by group: the reader that last listed it
    for (int a = 0; a < static_cast<int>(out_.groups.size()); ++a) {
      if (out_.groups[a].items.size() < 2 || out_.groups[a].kind == RegionKind::Opaque) continue;
      std::vector<int> readers;
      for (int i : out_.groups[a].items)
        for (int user : g_.items[i].users)
          if (const int b = out_.group_of[user];
              b >= 0 && b != a && std::exchange(listed[at(b)], a) != a)
            readers.push_back(b);
      for (int b : readers) sink_into(a, b);
    }
  }

  void sink_into(int a, int b) {
    Group &from = out_.groups[a], &to = out_.groups[b];
    if (to.kind == RegionKind::Opaque || to.space != from.space ||
        (to.contraction >= 0 && to.items.size() < 2))
      return;
    std::vector<int> moved;
    auto moves = [&moved](int i) { return contains(moved, i); };
    for (auto it = from.items.rbegin(); it != from.items.rend(); ++it)
      if (sinks(*it, a, b, moves)) moved.push_back(*it);
    if (moved.empty()) return;
    // Every value that the moved items take from here must already be stored for another reader.
    for (int i : moved)
      for (const Ref& arg : g_.items[i].args)
        if (out_.group_of[arg.item] == a && !moves(arg.item) && !stored_anyway(arg.item, a, moves))
          return;
    if (to.items.size() + moved.size() > kMaxItems) return;
    for (int i : moved) {
      from.items.erase(std::find(from.items.begin(), from.items.end(), i));
      out_.group_of[i] = b;
      to.items.push_back(i);
    }
    std::sort(to.items.begin(), to.items.end());
    group_note(b, cat("recomputes ", item_title(g_.items[moved.back()]), " instead of reading it"));
  }

  template <class F>
  bool sinks(int i, int a, int b, const F& moves) const {
    const Item& item = g_.items[i];
    const bool cheap =
        item.kind == OpKind::Elementwise && out_.role[i] == Role::Element && !item.wanted;
    if (!cheap || out_.groups[a].contraction == i || item.users.empty()) return false;
    for (const Ref& arg : item.args) {
      // The contraction's own result is available only in its epilogue, unless the result is
      // stored.
      if (out_.group_of[arg.item] == a && !identity(arg, out_.groups[a].space)) return false;
      if (g_.items[arg.item].kind != OpKind::Leaf && out_.group_of[arg.item] != a) return false;
      if (g_.items[arg.item].op == Op::Variable) return false;
      if (out_.groups[b].row_axes > 1 && external(arg, a, b) &&
          !row_merges(arg, out_.groups[b].row_axes))
        return false;
      if (const int c = out_.groups[b].contraction; c >= 0 && external(arg, a, b)) {
        std::int64_t scratch[kMaxRank];
        if (!reshape_strides(arg.shape, arg.stride, epilogue_space(g_.items[c]), scratch))
          return false;
      }
    }
    for (int user : item.users) {
      // An operand of the contraction must be complete before the contraction starts.
      if (user == out_.groups[b].contraction) return false;
      if (out_.group_of[user] != b && !(out_.group_of[user] == a && moves(user))) return false;
      for (const Ref& arg : g_.items[user].args)
        if (arg.item == i && !identity(arg, out_.groups[b].space)) return false;
    }
    return true;
  }

  template <class F>
  bool stored_anyway(int i, int a, const F& moves) const {
    if (g_.items[i].wanted) return true;
    for (int user : g_.items[i].users)
      if (out_.group_of[user] != a && !moves(user))
        for (const Ref& arg : g_.items[user].args)
          if (arg.item == i) return true;
    return false;
  }

  void drop_empty() {
    std::vector<int> index(out_.groups.size(), -1);
    std::vector<Group> kept;
    kept.reserve(static_cast<std::size_t>(std::count_if(
        out_.groups.begin(), out_.groups.end(), [](const Group& g) { return !g.items.empty(); })));
    for (std::size_t k = 0; k < out_.groups.size(); ++k) {
      if (out_.groups[k].items.empty()) continue;
      index[k] = static_cast<int>(kept.size());
      kept.push_back(std::move(out_.groups[k]));
    }
    out_.groups = std::move(kept);
    for (int& owner : out_.group_of)
      if (owner >= 0) owner = index[static_cast<std::size_t>(owner)];
  }

  const Lowered& g_;
  PlanGraph waits_;  // over items, merged as their groups are merged
  bool on_, on_gpu_;
  std::int64_t max_row_;
  Fused out_;
};

}  // namespace

Shape epilogue_space(Op op, const Shape& s, bool channels_last) {
  if (channels_last) return {1, s[0] * s[1] * s[2], s[3]};
  if (op == Op::Matmul) {
    std::int64_t batch = 1;
    for (int d = 0; d < s.rank() - 2; ++d) batch *= s[d];
    return {batch, s[s.rank() - 2], s[s.rank() - 1]};
  }
  if (op == Op::Conv2dWeightGrad) return {1, s[0], s[1] * s[2] * s[3]};
  return {s[0], s[1], s[2] * s[3]};
}

Shape epilogue_space(const Item& contraction) {
  return epilogue_space(contraction.op, contraction.shape, contraction.channels_last);
}

Fused fuse(const Lowered& graph, const PlanOptions& options) { return Fuser(graph, options).run(); }

}  // namespace tenon

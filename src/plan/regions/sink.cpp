// For each group and each group that reads from it: which items move, and whether all of them may.
#include "plan/regions/sink.h"

#include <utility>
#include <vector>

#include "base/contains.h"
#include "base/index.h"
#include "base/str.h"
#include "ops/table.h"
#include "plan/regions/rows.h"

namespace tenon {
namespace {

/// Moves items from group a to group b.
class Sinking {
 public:
  Sinking(Grouping& groups, int a, int b) : groups_(groups), a_(a), b_(b) {}

  /// Whether something moved.
  bool run() {
    const Group &from = groups_.group(a_), &to = groups_.group(b_);
    if (to.kind == RegionKind::Opaque || to.space != from.space ||
        (to.contraction >= 0 && to.items.size() < 2))
      return false;
    for (auto it = from.items.rbegin(); it != from.items.rend(); ++it)
      if (sinks(*it)) moved_.push_back(*it);
    if (moved_.empty() || !reads_stored() || to.items.size() + moved_.size() > kMaxItems)
      return false;
    for (int i : moved_) groups_.move(i, b_);
    groups_.note(
        b_, cat("recomputes ", item_title(groups_.item(moved_.back())), " instead of reading it"));
    return true;
  }

 private:
  bool moves(int i) const { return contains(moved_, i); }

  bool sinks(int i) const {
    const Item& item = groups_.item(i);
    const bool cheap = item.kind == OpKind::Elementwise && groups_.role(i) == Role::Element &&
                       !item.wanted && groups_.group(a_).contraction != i;
    if (!cheap || item.users.empty()) return false;
    for (const Ref& arg : item.args)
      if (!is_at_hand(arg)) return false;
    for (int user : item.users)
      if (!may_take(user, i)) return false;
    return true;
  }

  /// Whether group b can read the argument of an item that moves to it.
  bool is_at_hand(const Ref& arg) const {
    const Group& to = groups_.group(b_);
    const bool is_ours = groups_.owner(arg.item) == a_;
    // The contraction's own result is available only in its epilogue, unless the result is stored.
    if (is_ours && !identity(arg, groups_.group(a_).space)) return false;
    const Item& base = groups_.item(arg.item);
    if ((base.kind != OpKind::Leaf && !is_ours) || base.op == Op::Variable) return false;
    if (!groups_.external(arg, a_, b_)) return true;
    if (to.row_axes > 1 && !row_merges(arg, to.row_axes)) return false;
    std::int64_t scratch[kMaxRank];
    return to.contraction < 0 ||
           reshape_strides(arg.shape, arg.stride, epilogue_space(groups_.item(to.contraction)),
                           scratch);
  }

  /// Whether a reader of item i moves too, or is in group b and reads the item element by element.
  bool may_take(int user, int i) const {
    const Group& to = groups_.group(b_);
    // An operand of the contraction must be complete before the contraction starts.
    if (user == to.contraction) return false;
    const int owner = groups_.owner(user);
    if (owner != b_ && !(owner == a_ && moves(user))) return false;
    for (const Ref& arg : groups_.item(user).args)
      if (arg.item == i && !identity(arg, to.space)) return false;
    return true;
  }

  /// Whether every value that the moved items take from group a is stored for another reader
  /// anyway.
  bool reads_stored() const {
    for (int i : moved_)
      for (const Ref& arg : groups_.item(i).args)
        if (groups_.owner(arg.item) == a_ && !moves(arg.item) && !stored_anyway(arg.item))
          return false;
    return true;
  }

  bool stored_anyway(int i) const {
    if (groups_.item(i).wanted) return true;
    for (int user : groups_.item(i).users)
      if (groups_.owner(user) != a_ && !moves(user))
        for (const Ref& arg : groups_.item(user).args)
          if (arg.item == i) return true;
    return false;
  }

  Grouping& groups_;
  const int a_, b_;
  std::vector<int> moved_;
};

}  // namespace

int sink(Grouping& groups) {
  int count = 0;
  std::vector<int> listed(at(groups.group_count()), -1);  // by group: the one that last listed it
  for (int a = 0; a < groups.group_count(); ++a) {
    if (groups.group(a).items.size() < 2 || groups.group(a).kind == RegionKind::Opaque) continue;
    std::vector<int> readers;
    for (int i : groups.group(a).items)
      for (int user : groups.item(i).users)
        if (const int b = groups.owner(user);
            b >= 0 && b != a && std::exchange(listed[at(b)], a) != a)
          readers.push_back(b);
    for (int b : readers) count += Sinking(groups, a, b).run() ? 1 : 0;
  }
  return count;
}

}  // namespace tenon

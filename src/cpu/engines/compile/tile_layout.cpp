// Merges axes, maps views to the merged space, finds the levels of values, and chooses the tile
// size.
#include <algorithm>
#include <cstdlib>

#include "base/contains.h"
#include "cpu/engines/compile/tile_compiler.h"
#include "device/cpu_model.h"

namespace tenon::cpu {

namespace {

constexpr std::int64_t kBlockRows = 32;                   // rows of a tile that is a block
constexpr std::int64_t kAcrossRows = kCpu.line_floats();  // rows of a tile of whole rows
static_assert(kBlockRows <= kMaxFusedRows && kAcrossRows <= kMaxFusedRows);

}  // namespace

bool TileCompiler::has_view(const MapInstr& instr) const {
  return instr.code == MapCode::Load || instr.code == MapCode::Affine;
}

void TileCompiler::merge_axes() {
  const int rank = map_.space.rank();
  const int row_axis = rank - 1;
  for (const MapInstr& instr : map_.instrs) {
    raw_.push_back(has_view(instr) || instr.code == MapCode::Random ? instr.view : View());
    if (instr.code == MapCode::Random)
      std::fill(raw_.back().stride, raw_.back().stride + kMaxRank, 0);
    if (instr.per_row && rank > 0) raw_.back().stride[row_axis] = 0;
  }
  for (const MapStore& store : map_.stores) {
    raw_.push_back(store.view);
    if (map_.instrs[at(store.source)].per_row && rank > 0) raw_.back().stride[row_axis] = 0;
  }
  for (const MapReduce& reduce : map_.reduces) {
    View view;
    std::int64_t stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      if ((reduce.axes >> d) & 1u) continue;
      view.stride[d] = map_.space[d] == 1 ? 0 : stride;
      stride *= map_.space[d];
    }
    raw_.push_back(view);
  }
  const bool rows_matter = map_.has_rows || epilogue_;
  std::vector<int> axes;  // kept, outermost first
  for (int d = 0; d < rank; ++d)
    if (map_.space[d] != 1 || epilogue_ || (rows_matter && d == row_axis)) axes.push_back(d);
  sizes_.clear();
  merged_.assign(raw_.size(), {});
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const int d = axes[k];
    const bool is_separate =
        epilogue_ || (map_.has_rows && d == row_axis) || !merges(k == 0 ? -1 : axes[k - 1], d);
    if (is_separate || sizes_.empty()) {
      sizes_.push_back(map_.space[d]);
      for (std::size_t v = 0; v < raw_.size(); ++v) merged_[v].push_back(raw_[v].stride[d]);
    } else {
      sizes_.back() *= map_.space[d];
      for (std::size_t v = 0; v < raw_.size(); ++v) merged_[v].back() = raw_[v].stride[d];
    }
  }
  if (sizes_.empty()) {
    sizes_.push_back(1);
    for (auto& strides : merged_) strides.push_back(0);
  }
  p_.length_ = sizes_.back();
  p_.outer_.assign(sizes_.begin(), sizes_.end() - 1);
  p_.rows_ = 1;
  for (const std::int64_t size : p_.outer_) p_.rows_ *= size;
}

bool TileCompiler::merges(int outer, int inner) const {
  if (outer < 0) return false;
  for (const View& view : raw_)
    if (view.stride[outer] != view.stride[inner] * map_.space[inner]) return false;
  return true;
}

void TileCompiler::make_views() {
  for (std::size_t v = 0; v < raw_.size(); ++v) {
    TileView view;
    view.value = raw_[v].value;
    view.offset = raw_[v].offset;
    view.stride.assign(merged_[v].begin(), merged_[v].end() - 1);
    view.inner = p_.length_ == 1 && !epilogue_ ? 0 : merged_[v].back();
    set_linear(view);
    const bool memory = view.value != kNoValue;
    view.item = memory ? static_cast<int>(item_size(values_[at(view.value)].dtype)) : 1;
    p_.views_.push_back(view);
    p_.needs_coordinates_ = p_.needs_coordinates_ || !view.linear;
    if (memory && v < map_.instrs.size() && view.inner == 1 && (epilogue_ || view.item == 2))
      p_.fetched_.push_back(static_cast<int>(v));
  }
}

void TileCompiler::set_linear(TileView& view) const {
  view.linear = true;
  std::int64_t count = 1;  // rows inside one step of the axis
  view.row_stride = 0;
  bool known = false;
  for (std::size_t d = p_.outer_.size(); d-- > 0;) {
    if (p_.outer_[d] != 1) {
      if (!known) view.row_stride = view.stride[d];
      view.linear = view.linear && view.stride[d] == view.row_stride * count;
      known = true;
    }
    count *= p_.outer_[d];
  }
}

Level TileCompiler::view_level(const TileView& v) const {
  if (v.inner != 0) return Level::Element;
  for (std::size_t d = 0; d < v.stride.size(); ++d)
    if (v.stride[d] != 0 && p_.outer_[d] != 1) return Level::Row;
  return Level::Run;
}

void TileCompiler::find_levels() {
  level_.resize(map_.instrs.size());
  depth_.resize(map_.instrs.size());
  for (std::size_t i = 0; i < map_.instrs.size(); ++i) {
    const MapInstr& instr = map_.instrs[i];
    Level level = Level::Run;
    int depth = 0;
    for (const int arg : instr.args) {
      if (arg < 0) continue;
      level = std::max(level, level_[at(arg)]);
      depth = std::max(depth, depth_[at(arg)]);
    }
    if (has_view(instr)) level = view_level(view(instr_view(static_cast<int>(i))));
    if (instr.code == MapCode::Accumulator) level = Level::Element;
    if (instr.code == MapCode::Random) level = instr.per_row ? Level::Row : Level::Element;
    if (instr.code == MapCode::RowReduce) {
      level = Level::Row;
      ++depth;
    }
    level_[i] = level;
    depth_[i] = depth;
    last_depth_ = std::max(last_depth_, depth);
    cost_ += cost_of(instr);
  }
  for (const MapInstr& instr : map_.instrs)
    if (instr.code == MapCode::Load) loaded_.push_back(instr.view.value);
  for (const MapStore& store : map_.stores) stored_.push_back(store.view.value);
}

bool TileCompiler::is_loaded(ValueId value) const { return contains(loaded_, value); }

bool TileCompiler::is_stored(ValueId value) const { return contains(stored_, value); }

void TileCompiler::choose_tile(std::int64_t elements) {
  const bool across = reads_across(), blocks = across && may_block();
  p_.single_pass_ = whole_rows_ && (blocks || p_.length_ <= elements);
  tall_ = across && !blocks && p_.single_pass_ && p_.rows_ >= kAcrossRows;
  if (blocks) {
    p_.tile_rows_ = std::min(kBlockRows, p_.rows_);
    p_.tile_length_ = std::min(elements / 32, p_.length_);
  } else if (p_.single_pass_) {
    p_.tile_length_ = p_.length_;
    const std::int64_t rows = elements / std::max<std::int64_t>(p_.length_, 1);
    p_.tile_rows_ = std::clamp<std::int64_t>(
        rows, std::min(tall_ ? kAcrossRows : least_rows_, std::max<std::int64_t>(p_.rows_, 1)),
        std::max<std::int64_t>(p_.rows_, 1));
  } else {
    p_.tile_rows_ = 1;
    p_.tile_length_ = std::min(elements, std::max<std::int64_t>(p_.length_, 1));
  }
  capacity_ = round_up(p_.tile_rows_ * std::max<std::int64_t>(p_.tile_length_, 1), 16);
}

bool TileCompiler::reads_across() const {
  if (epilogue_ || p_.outer_.empty() || p_.outer_.back() < 8) return false;
  for (const TileView& view : p_.views_) {
    const std::int64_t inner = std::abs(view.inner);
    if (view.value != kNoValue && inner * view.item >= 64 && std::abs(view.stride.back()) < inner)
      return true;
  }
  return false;
}

bool TileCompiler::may_block() const {
  if (map_.has_rows || p_.length_ <= kBlockRows) return false;
  for (std::size_t s = 0; s < map_.stores.size(); ++s)
    if (view(store_view(s)).inner == 0) return false;
  for (const MapInstr& instr : map_.instrs)
    if (instr.code == MapCode::Random) return false;
  return true;
}

TileCount TileCompiler::count_of(Level level) const {
  if (level == Level::Element) return TileCount::All;
  return level == Level::Row && !row_is_scalar() ? TileCount::Rows : TileCount::One;
}

}  // namespace tenon::cpu

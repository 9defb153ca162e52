// Brings matrix products, convolutions and their gradients to one form.
#include "cuda/engines/products/form.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/index.h"
#include "cuda/engines/launch/words.h"

namespace tenon::cuda {

namespace {

constexpr std::int64_t kLimit = std::int64_t{1} << 31;
/// Lines whose length is a multiple of this many elements are faster by pairs (lab/conv).
constexpr std::int64_t kPairedLine = 8;

/// An axis of up to three digits before it is packed; `u` belongs to the second digit, `v` to the
/// third.
struct Axis {
  std::int64_t size[3] = {1, 1, 1}, stride[3] = {};
  std::int64_t u0 = 0, u_step = 0, v0 = 0, v_step = 0;

  std::int64_t count() const { return size[0] * size[1] * size[2]; }
};

Axis one_digit(std::int64_t size, std::int64_t stride) { return {{1, 1, size}, {0, 0, stride}}; }

/// Merges digits that are consecutive in memory into one, towards the last.
Axis merged(Axis x) {
  for (int pass = 0; pass < 2; ++pass)
    for (int d = 1; d >= 0; --d) {
      const bool joins = x.size[d + 1] == 1 || x.stride[d] == x.size[d + 1] * x.stride[d + 1];
      if (x.size[d] != 1 && !joins) continue;
      if (x.size[d] != 1) {
        if (x.size[d + 1] == 1) x.stride[d + 1] = x.stride[d];
        x.size[d + 1] *= x.size[d];
      }
      x.size[d] = 1;
      x.stride[d] = 0;
    }
  return x;
}

/// Packs an axis; returns the number of digits that a kernel must split. Digits in a window, and
/// digits that a prologue's layouts use too, are not merged.
int pack(const Axis& x, bool windowed, bool apart, GemmAxis& to, std::int64_t& last) {
  const Axis y = windowed || apart ? x : merged(x);
  last = y.size[2];
  if (!windowed && y.size[0] == 1 && y.size[1] == 1) {
    to.stride[0] = y.stride[2];
    return 1;
  }
  for (int d = 0; d < 3; ++d) to.stride[d] = y.stride[d];
  to.size1 = make_divisor(y.size[1]);
  to.size2 = make_divisor(y.size[2]);
  const auto whole = [](std::int64_t i) { return static_cast<int>(i); };
  to.u0 = whole(y.u0), to.u_step = whole(y.u_step);
  to.v0 = whole(y.v0), to.v_step = whole(y.v_step);
  return 3;
}

void set_axes(OperandForm& o, const Axis& outer, const Axis& inner, bool apart) {
  o.outer_digits = pack(outer, o.window != 0, apart, o.operand.outer, o.last_outer);
  o.inner_digits = pack(inner, o.window != 0, apart, o.operand.inner, o.last_inner);
}

std::int64_t last_stride(const GemmAxis& axis, int digits) {
  return axis.stride[digits == 1 ? 0 : 2];
}

/// True if `vector` elements along one axis can always be copied at once.
bool copies_at_once(const OperandForm& o, bool along_k, int vector,
                    std::span<const std::int64_t> batch_strides) {
  const GemmAxis &line = along_k ? o.operand.inner : o.operand.outer,
                 &other = along_k ? o.operand.outer : o.operand.inner;
  const int digits = along_k ? o.inner_digits : o.outer_digits;
  if (o.window != 0 || last_stride(line, digits) != 1) return false;
  if ((along_k ? o.last_inner : o.last_outer) % vector != 0) return false;
  bool even = o.offset % vector == 0;
  for (const std::int64_t stride : other.stride) even = even && stride % vector == 0;
  if (digits == 3) even = even && line.stride[0] % vector == 0 && line.stride[1] % vector == 0;
  for (const std::int64_t stride : batch_strides) even = even && stride % vector == 0;
  return even;
}

/// Tiles in shared memory have the operand's order in memory.
void choose_layout(OperandForm& o, std::span<const std::int64_t> batch_strides) {
  // A prologue takes 8 elements if they have at most 16 bytes together, otherwise 4.
  std::vector<int> vectors{static_cast<int>(16 / item_size(o.dtype))};
  if (o.prologue != nullptr) vectors = {4};
  if (o.prologue != nullptr && item_size(o.dtype) <= 2) vectors = {8, 4};
  for (const int vector : vectors)
    for (const bool along_k : {true, false})
      if (copies_at_once(o, along_k, vector, batch_strides)) {
        o.along_k = along_k;
        o.vector = vector;
        return;
      }
  const std::int64_t inner = std::abs(last_stride(o.operand.inner, o.inner_digits)),
                     outer = std::abs(last_stride(o.operand.outer, o.outer_digits));
  // Along the axis with the longer run of neighbours; if there is none, the axis with the shorter
  // steps.
  const std::int64_t inner_run = inner == 1 ? o.last_inner : 0,
                     outer_run = outer == 1 ? o.last_outer : 0;
  const auto step = [](std::int64_t stride, std::int64_t size) {
    return size == 1 || stride == 0 ? kLimit : stride;
  };
  o.along_k = inner_run != outer_run ? inner_run > outer_run
                                     : step(inner, o.last_inner) <= step(outer, o.last_outer);
  o.pairs = item_size(o.dtype) == 2 && o.prologue == nullptr && o.window == 0 && o.along_k &&
            last_stride(o.operand.inner, o.inner_digits) == 1 && o.last_inner % kPairedLine == 0;
}

/// The largest distance of an operand's offsets from its first element.
std::int64_t reach(const View& view, const Shape& shape) {
  std::int64_t sum = 0;
  for (int d = 0; d < shape.rank(); ++d) sum += (shape[d] - 1) * std::abs(view.stride[d]);
  return sum;
}

/// Forms of one contraction with different views of its operands must agree in two things: which
/// digits and batch axes are not merged, and whether all batches use one matrix.
struct Likeness {
  bool apart = false;
  std::optional<bool> one_matrix;
};

class Former {
 public:
  Former(const Contraction& c, std::span<const Value> values, Likeness like)
      : c_(c), v_(c.attrs.conv), like_(like) {
    form_.a.value = c.a.value;
    form_.b.value = c.b.value;
    form_.a.dtype = values[at(c.a.value)].dtype;
    form_.b.dtype = values[at(c.b.value)].dtype;
    form_.a.element = form_.a.dtype;
    form_.b.element = form_.b.dtype;
    form_.a.offset = c.a.offset;
    form_.b.offset = c.b.offset;
  }

  /// The prologues of the region's operands; the form may exchange the operands.
  void set_prologues(const Region& region) {
    for (const auto& [o, map] :
         {std::pair{&form_.a, &region.prologue_a}, {&form_.b, &region.prologue_b}})
      if (!map->instrs.empty()) {
        o->prologue = map;
        o->element = operand_dtype(*map, o->dtype);
      }
  }

  ContractionForm run() {
    if (c_.out_shape.numel() == 0) return form_;
    switch (c_.op) {
      case Op::Matmul:
        matmul();
        break;
      case Op::Conv2d:
        forward();
        break;
      case Op::Conv2dInputGrad:
        input_grad();
        break;
      default:
        weight_grad();
    }
    finish();
    return form_;
  }

 private:
  void sizes(std::int64_t m, std::int64_t n, std::int64_t k) {
    form_.problem.m = m;
    form_.problem.n = n;
    form_.problem.k = k;
  }

  void add_batch_axis(std::int64_t size, std::int64_t a, std::int64_t b) {
    if (size == 1) return;
    if (!like_.apart && !batch_.empty() && batch_.back().a == size * a &&
        batch_.back().b == size * b) {
      batch_.back() = {batch_.back().size * size, a, b};
    } else {
      batch_.push_back({size, a, b});
    }
  }

  void matmul() {
    const int rank = c_.a_shape.rank();
    for (int d = 0; d + 2 < rank; ++d)
      add_batch_axis(c_.a_shape[d], c_.a.stride[d], c_.b.stride[d]);
    const std::int64_t m = c_.a_shape[rank - 2], k = c_.a_shape[rank - 1], n = c_.b_shape[rank - 1];
    Axis rows = one_digit(m, c_.a.stride[rank - 2]);
    if (like_.one_matrix.value_or(batch_.size() == 1 &&
                                  batch_[0].b == 0)) {  // one B for all: their rows are one axis
      rows.size[0] = batch_[0].size;
      rows.stride[0] = batch_[0].a;
      batch_.clear();
      form_.inner_axis = 1;
      form_.problem.inner_size = make_divisor(m);
    }
    form_.problem.batch_step = 1;
    sizes(rows.count(), n, k);
    set_axes(form_.a, rows, one_digit(k, c_.a.stride[rank - 1]), like_.apart);
    set_axes(form_.b, one_digit(n, c_.b.stride[rank - 1]), one_digit(k, c_.b.stride[rank - 2]),
             like_.apart);
    form_.store_vector = n % 4 == 0 ? 4 : 1;
  }

  /// Filters of one group: [K / groups, C / groups, R, S] by the strides of a view.
  static Axis taps(const View& w, const Shape& shape) {
    return {{shape[1], shape[2], shape[3]}, {w.stride[1], w.stride[2], w.stride[3]}};
  }
  static Axis pixels(const View& view, const Shape& shape) {
    return {{shape[0], shape[2], shape[3]}, {view.stride[0], view.stride[2], view.stride[3]}};
  }
  /// Results [N, channels, pixels]: n counts images and pixels.
  void pixels_are_columns(const Shape& out) {
    form_.inner_axis = 2;
    form_.problem.inner_size = make_divisor(out[2] * out[3]);
    form_.problem.row_step = out[1] / v_.groups;
    form_.store_vector = out[2] * out[3] % 4 == 0 ? 4 : 1;
  }

  /// The window of the outputs' pixels and the taps of x; both get strides of x.
  void window_of(OperandForm& o, int window, const View& x, const Shape& shape, Axis& pixel,
                 Axis& tap) {
    pixel.stride[0] = x.stride[0];
    pixel.stride[1] = v_.stride_h * x.stride[2], pixel.stride[2] = v_.stride_w * x.stride[3];
    tap.stride[0] = x.stride[1];
    tap.stride[1] = v_.dil_h * x.stride[2], tap.stride[2] = v_.dil_w * x.stride[3];
    o.offset -= v_.pad_h * x.stride[2] + v_.pad_w * x.stride[3];
    pixel.u0 = -v_.pad_h, pixel.u_step = v_.stride_h;
    pixel.v0 = -v_.pad_w, pixel.v_step = v_.stride_w;
    tap.u_step = v_.dil_h, tap.v_step = v_.dil_w;
    if (v_.pad_h != 0 || v_.pad_w != 0) open_window(o, window, shape, pixel, tap);
  }
  void open_window(OperandForm& o, int window, const Shape& image, const Axis& pixel,
                   const Axis& tap) {
    const auto whole = [](std::int64_t i) { return static_cast<int>(i); };
    o.window = window;
    o.operand.limit_u = whole(image[2]), o.operand.limit_v = whole(image[3]);
    o.operand.taps_u = whole(tap.size[1]), o.operand.taps_v = whole(tap.size[2]);
    o.operand.tap_step_u = whole(tap.u_step), o.operand.tap_step_v = whole(tap.v_step);
    const std::int64_t sizes[] = {pixel.size[1], pixel.size[2], image[2], image[3]};
    plain_ = plain_ || std::max(tap.size[1], tap.size[2]) > kGemmMaxTaps ||
             *std::max_element(std::begin(sizes), std::end(sizes)) >= kLimit / 4;
  }

  void forward() {
    const Shape &w = c_.b_shape, y = c_.result_shape();
    const std::int64_t group_out = w[0] / v_.groups;
    add_batch_axis(v_.groups, group_out * c_.b.stride[0], w[1] * c_.a.stride[1]);
    Axis pixel{{y[0], y[2], y[3]}, {}}, tap{{w[1], w[2], w[3]}, {}};
    window_of(form_.a, 1, c_.a, c_.a_shape, pixel, tap);
    images_by_filters(pixel, tap, one_digit(group_out, c_.b.stride[0]), taps(c_.b, w));
  }

  /// The form's operands are still image and filters. Rows are channels of the result and columns
  /// are its pixels; with NHWC, rows are pixels and columns are channels.
  void images_by_filters(const Axis& pixel, const Axis& tap, const Axis& channel,
                         const Axis& filter) {
    set_axes(form_.a, pixel, tap, like_.apart);
    set_axes(form_.b, channel, filter, like_.apart);
    if (c_.channels_last) {
      for (BatchAxis& groups : batch_) std::swap(groups.a, groups.b);
      sizes(pixel.count(), channel.count(), tap.count());
      form_.problem.column_step = channel.count();
      form_.store_vector = channel.count() % 4 == 0 ? 4 : 1;
      return;
    }
    std::swap(form_.a, form_.b);
    sizes(channel.count(), pixel.count(), tap.count());
    pixels_are_columns(c_.out_shape);
  }

  void input_grad() {
    const Shape &dy = c_.a_shape, &w = c_.b_shape, dx = c_.result_shape();
    const std::int64_t group_out = w[0] / v_.groups;
    add_batch_axis(v_.groups, group_out * c_.b.stride[0], group_out * c_.a.stride[1]);
    const bool strided = v_.stride_h != 1 || v_.stride_w != 1;
    OperandForm& o = form_.a;
    Axis pixel{{dx[0], dx[2], dx[3]}, {c_.a.stride[0], 0, 0}}, tap{{group_out, w[2], w[3]}, {}};
    tap.stride[0] = c_.a.stride[1];
    pixel.u_step = pixel.v_step = 1;
    pixel.u0 = v_.pad_h, tap.u_step = -v_.dil_h;
    pixel.v0 = v_.pad_w, tap.v_step = -v_.dil_w;
    open_window(o, strided ? 3 : 1, dy, pixel, tap);
    if (strided) {
      o.operand.step_u = make_divisor(v_.stride_h);
      o.operand.step_v = make_divisor(v_.stride_w);
      o.operand.stride_u = c_.a.stride[2];
      o.operand.stride_v = c_.a.stride[3];
    } else {
      pixel.stride[1] = c_.a.stride[2], pixel.stride[2] = c_.a.stride[3];
      tap.stride[1] = -v_.dil_h * c_.a.stride[2], tap.stride[2] = -v_.dil_w * c_.a.stride[3];
      o.offset += v_.pad_h * c_.a.stride[2] + v_.pad_w * c_.a.stride[3];
    }
    Axis filter = taps(c_.b, w);  // transposed
    filter.size[0] = group_out;
    filter.stride[0] = c_.b.stride[0];
    images_by_filters(pixel, tap, one_digit(w[1], c_.b.stride[1]), filter);
  }

  void weight_grad() {
    const Shape &y = c_.b_shape, &w = c_.out_shape;
    const std::int64_t group_out = w[0] / v_.groups;
    add_batch_axis(v_.groups, group_out * c_.b.stride[1], w[1] * c_.a.stride[1]);
    std::swap(form_.a, form_.b);  // A: the output's gradient
    Axis pixel{{y[0], y[2], y[3]}, {}}, tap{{w[1], w[2], w[3]}, {}};
    window_of(form_.b, 2, c_.a, c_.a_shape, pixel, tap);
    sizes(group_out, tap.count(), pixel.count());
    set_axes(form_.a, one_digit(group_out, c_.b.stride[1]), pixels(c_.b, y), like_.apart);
    set_axes(form_.b, tap, pixel, like_.apart);
    form_.problem.row_step = group_out;
    form_.store_vector = tap.count() % 4 == 0 ? 4 : 1;
  }

  void finish() {
    GemmProblem& p = form_.problem;
    std::vector<std::int64_t> strides_a, strides_b;
    p.batch_axes = static_cast<int>(batch_.size());
    for (std::size_t d = 0; d < batch_.size(); ++d) {
      form_.batch *= batch_[d].size;
      p.batch_size[d] = make_divisor(batch_[d].size);
      p.batch_stride_a[d] = batch_[d].a;
      p.batch_stride_b[d] = batch_[d].b;
      strides_a.push_back(batch_[d].a);
      strides_b.push_back(batch_[d].b);
    }
    choose_layout(form_.a, strides_a);
    choose_layout(form_.b, strides_b);
    const std::int64_t farthest = std::max(reach(c_.a, c_.a_shape), reach(c_.b, c_.b_shape));
    form_.wide = farthest >= kLimit / 2;  // half: padding reaches a little farther
    // Tiles round sizes up; counters must stay below 2^31 after rounding too.
    form_.plain = plain_ || std::max({p.m, p.n, p.k}) >= kLimit - 4096 || form_.batch >= kLimit;
  }

  struct BatchAxis {
    std::int64_t size, a, b;
  };

  const Contraction& c_;
  const ConvAttrs v_;
  const Likeness like_;
  ContractionForm form_;
  bool plain_ = false;
  std::vector<BatchAxis> batch_;
};

bool same_layout(const View& x, const View& y, const Shape& shape) {
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] != 1 && x.stride[d] != y.stride[d]) return false;
  return x.offset == y.offset;
}

bool is_one_element(const View& view, const Shape& shape) {
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] != 1 && view.stride[d] != 0) return false;
  return true;
}

/// True if an instruction of a prologue depends on the position of its element.
bool is_placed(const MapInstr& instr) {
  return instr.code == MapCode::Load || instr.code == MapCode::Random;
}

/// The layouts of a prologue's further operands besides the operand's own.
void list_layouts(OperandForm& o, const View& own, const Shape& shape) {
  if (o.prologue == nullptr) return;
  for (const MapInstr& instr : o.prologue->instrs)
    if (is_placed(instr) && layout_of(o, own, instr.view, shape) == kNewLayout)
      o.layouts.push_back(instr.view);
}

bool swaps_operands(const Contraction& c) { return c.op != Op::Matmul; }

/// Forms the contraction with a layout's view in place of an operand's, and takes its strides.
GemmLayout place_layout(const Contraction& c, std::span<const Value> values, const Likeness& like,
                        bool first, const View& view) {
  Contraction other = c;
  View& replaced = first ? other.a : other.b;
  const ValueId value = replaced.value;  // the form needs only the dtype of this value
  replaced = view;
  replaced.value = value;
  const ContractionForm form = Former(other, values, like).run();
  const bool is_a = first != swaps_operands(c);
  const OperandForm& o = is_a ? form.a : form.b;
  GemmLayout layout;
  layout.offset = o.offset;
  std::copy(std::begin(o.operand.outer.stride), std::end(o.operand.outer.stride), layout.outer);
  std::copy(std::begin(o.operand.inner.stride), std::end(o.operand.inner.stride), layout.inner);
  layout.stride_u = o.operand.stride_u;
  layout.stride_v = o.operand.stride_v;
  const GemmProblem& p = form.problem;
  for (int d = 0; d < p.batch_axes; ++d)
    layout.batch[d] = is_a ? p.batch_stride_a[d] : p.batch_stride_b[d];
  return layout;
}

}  // namespace

int layout_of(const OperandForm& operand, const View& own, const View& view, const Shape& shape) {
  if (same_layout(view, own, shape)) return kOwnLayout;
  if (is_one_element(view, shape)) return kOneElement;
  for (std::size_t j = 0; j < operand.layouts.size(); ++j)
    if (same_layout(view, operand.layouts[j], shape)) return static_cast<int>(j);
  return kNewLayout;
}

ContractionForm contraction_form(const Region& region, std::span<const Value> values) {
  const Contraction& c = region.contraction;
  OperandForm first, second;  // as the region has them
  first.prologue = region.prologue_a.instrs.empty() ? nullptr : &region.prologue_a;
  second.prologue = region.prologue_b.instrs.empty() ? nullptr : &region.prologue_b;
  list_layouts(first, c.a, c.a_shape);
  list_layouts(second, c.b, c.b_shape);
  Likeness like;
  like.apart = !first.layouts.empty() || !second.layouts.empty();
  Former former(c, values, like);
  former.set_prologues(region);
  ContractionForm form = former.run();
  if (!like.apart || c.out_shape.numel() == 0) return form;
  like.one_matrix = form.inner_axis == 1;
  for (const bool is_first : {true, false}) {
    OperandForm& o = is_first != swaps_operands(c) ? form.a : form.b;
    o.layouts = (is_first ? first : second).layouts;
    for (const View& view : o.layouts) {
      o.placed.push_back(place_layout(c, values, like, is_first, view));
      form.wide =
          form.wide ||
          std::abs(view.offset) + reach(view, is_first ? c.a_shape : c.b_shape) >= kLimit / 2;
    }
  }
  return form;
}

}  // namespace tenon::cuda

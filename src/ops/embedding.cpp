// Embeddings with options, and bags of embeddings. Rows are gathered. Each option changes either
// the value of a row or its gradient.
#include <cmath>

#include <tenon/error.h>
#include <tenon/functional.h>

#include "base/make_error.h"
#include "ops/embedding.h"
#include "ops/index_check.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// The constant of PyTorch's renorm.
constexpr double kNormEps = 1e-7;

// The value of one tensor with the gradient of another.
Tensor with_gradient_of(const Tensor& rows, const Tensor& value) {
  return detach(value) + (rows - detach(rows));
}

Tensor scaled_to(const Tensor& rows, double most, double p) {
  const Tensor norm = vector_norm(rows, p, {-1}, true);
  return with_gradient_of(rows, rows * where(gt(norm, most), most / (norm + kNormEps), 1));
}

// For each index, the number of its occurrences, in the rows' dtype.
Tensor frequency(const Tensor& index, std::int64_t entries, DType dtype) {
  const Tensor flat = reshape(index, {index.numel()});
  const DType wide = item_size(dtype) == 2 ? DType::Float32 : dtype;
  const Tensor counts = index_add(zeros({entries}, wide), 0, flat, ones({index.numel()}, wide));
  return reshape(index_select(counts, 0, flat), to_ints(index.shape()));
}

// Rows by index. A sparse gradient is the same node as any other, with a mark.
Tensor rows_at(const Tensor& index, const Tensor& weight, bool sparse) {
  if (weight.rank() != 2)
    throw make_error<ShapeError>(where("embedding"), ": weight must be [entries, features], not ",
                                 weight.shape());
  Ints sizes = to_ints(index.shape());
  sizes.push_back(weight.size(1));
  const std::int64_t count = index.numel();
  if (!sparse) return reshape(index_select(weight, 0, reshape(index, {count})), sizes);
  const Tensor rows = broadcast_to(reshape(index, {count, 1}), {count, weight.size(1)});
  return reshape(build(Op::Gather, {weight, rows}, AxisAttrs{0, RowForm::Rows}), sizes);
}

void check_options(const OpPlace& at, const EmbeddingOptions& o) {
  if (o.max_norm && !(*o.max_norm > 0))
    throw make_error<ValueError>(at, ": max_norm is ", *o.max_norm, ", must be above 0");
  if (o.sparse && o.scale_grad_by_freq)
    throw make_error<ValueError>(at,
                                 ": scale_grad_by_freq counts the reads of all rows, which "
                                 "sparse avoids: set one of them");
}

// ---- Bags -------------------------------------------------------------------------------------

// The maximum of the rows that count. If those are all -infinity, the result is the first of them,
// not the filler of a row that does not count.
Tensor largest_inside(const Tensor& rows, const Tensor& inside) {
  const auto best = max(where(inside, rows, -HUGE_VAL), 1, true);
  const Tensor first = argmax(cast(inside, DType::UInt8), 1, true);
  const Tensor place = where(eq(best.values, -HUGE_VAL), first, best.indices);
  return where(any(inside, {1}), squeeze(gather(rows, 1, place), 1), 0);
}

// Rows [bags, length, features], and which of them count [bags, length] (undefined: all).
Tensor reduced_bags(const Tensor& rows, const Tensor& counts, BagMode mode) {
  const Tensor inside = counts.defined() ? unsqueeze(counts, -1) : Tensor();
  const std::int64_t length = rows.size(1);
  if (length == 0) return zeros({rows.size(0), rows.size(2)}, rows.dtype());
  if (mode == BagMode::Max)
    return inside.defined() ? largest_inside(rows, inside) : max(rows, 1).values;
  Tensor total = sum(inside.defined() ? where(inside, rows, 0) : rows, {1});
  if (mode == BagMode::Sum) return total;
  if (!inside.defined()) return total / static_cast<double>(length);
  return total / cast(maximum(sum(inside, {1}), 1), rows.dtype());
}

// The number of positions in each bag, int64.
Tensor sizes_of(const Tensor& bag, std::int64_t bags, const Tensor& each) {
  return narrow(index_add(zeros({bags + 1}, DType::Int64), 0, bag, each), 0, 0, bags);
}

// The maximum of each bag. For each feature, rows are sorted by value and then by bag, so the
// maximum is at the start of its bag. Like max(), it takes the first of equal values.
Tensor largest_rows(const Tensor& rows, const Tensor& bag, std::int64_t bags,
                    const Tensor& counts) {
  const std::int64_t places = rows.size(0), features = rows.size(1);
  const Tensor home = counts.defined() ? where(counts, bag, bags) : bag;
  const Tensor size = sizes_of(home, bags, ones({places}, DType::Int64));
  const Tensor begin = cumsum(size, 0) - size;
  const Tensor by_value = argsort(detach(rows), 0, true);
  const Tensor homes = broadcast_to(unsqueeze(home, 1), {places, features});
  const Tensor by_bag = argsort(gather(homes, 0, by_value), 0);
  const Tensor first = index_select(gather(by_value, 0, by_bag), 0, minimum(begin, places - 1));
  return where(unsqueeze(size > 0, 1), gather(rows, 0, first), 0);
}

// Rows [T, features]; row t belongs to bag bag[t]; rows with the number `bags` belong to none.
Tensor reduced_rows(const Tensor& rows, const Tensor& bag, std::int64_t bags, const Tensor& counts,
                    BagMode mode) {
  // Without rows every bag is empty: 0, like an empty sum.
  if (mode == BagMode::Max && rows.numel() > 0) return largest_rows(rows, bag, bags, counts);
  const Tensor kept = counts.defined() ? where(unsqueeze(counts, -1), rows, 0) : rows;
  const Tensor sums = index_add(zeros({bags + 1, rows.size(1)}, rows.dtype()), 0, bag, kept);
  Tensor total = narrow(sums, 0, 0, bags);
  if (mode != BagMode::Mean) return total;
  const Tensor each =
      counts.defined() ? cast(counts, DType::Int64) : ones({rows.size(0)}, DType::Int64);
  const Tensor size = maximum(sizes_of(bag, bags, each), 1);
  return total / cast(unsqueeze(size, -1), rows.dtype());
}

// The offsets; unless they grow from 0 to at most `places`, they are refused at run time.
Tensor checked_offsets(const Tensor& offsets, std::int64_t places) {
  const std::int64_t last = offsets.size(0) - 1;
  Tensor checked, growing;
  {
    const Scope scope("offsets");
    checked = offsets + zeros_within(offsets, places + 1);
  }
  {
    const Scope scope("offsets must not fall");
    growing =
        zeros_within(minimum(narrow(offsets, 0, 1, last) - narrow(offsets, 0, 0, last), 0), 1);
  }
  const Scope scope("offsets[0] must be 0");
  return checked + concat({zeros_within(narrow(offsets, 0, 0, 1), 1), growing}, 0);
}

// Rows times their weights. Rows that do not count are removed before, so that a NaN in them has no
// gradient.
Tensor weighted(const Tensor& rows, const Tensor& weights, const Tensor& counts) {
  if (!weights.defined()) return rows;
  const Tensor factor = cast(unsqueeze(weights, -1), rows.dtype());
  if (!counts.defined()) return rows * factor;
  const Tensor inside = unsqueeze(counts, -1);
  return where(inside, rows, 0) * where(inside, factor, 0);
}

void check_bags(const OpPlace& at, const Tensor& index, const Tensor& offsets,
                const EmbeddingBagOptions& o, const Tensor& per_sample_weights) {
  const int rank = offsets.defined() ? 1 : 2;
  if (index.rank() != rank)
    throw make_error<ShapeError>(at, ": the index is ", index.shape(), ", must be ",
                                 rank == 1 ? "a vector, because offsets are given"
                                           : "[bags, length], or a vector with offsets");
  if (offsets.defined() && (offsets.rank() != 1 || !is_integral(offsets.dtype())))
    throw make_error<ShapeError>(at, ": the offsets are ", offsets.shape(), " of ", offsets.dtype(),
                                 ", must be a vector of int64 or int32");
  if (o.include_last_offset && (!offsets.defined() || offsets.size(0) == 0))
    throw make_error<ValueError>(at, ": include_last_offset needs at least one offset");
  if (!per_sample_weights.defined()) return;
  if (o.mode != BagMode::Sum)
    throw make_error<ValueError>(at, ": per_sample_weights require BagMode::Sum");
  if (per_sample_weights.shape() != index.shape())
    throw make_error<ShapeError>(at, ": per_sample_weights are ", per_sample_weights.shape(),
                                 ", must be ", index.shape(), " as the index");
}

}  // namespace

// The bag of each position of a vector: the number of bags that start up to there, minus one.
Tensor bags_of(std::int64_t places, const Tensor& offsets) {
  const Tensor begins = checked_offsets(offsets, places);
  const Tensor one = ones({begins.size(0)}, DType::Int64);
  const Scope of_offsets("offsets");
  const Tensor begun = index_add(zeros({places + 1}, DType::Int64), 0, begins, one);
  // a first offset above 0 is refused
  return maximum(cumsum(narrow(begun, 0, 0, places), 0) - 1, 0);
}

Tensor embedding(const Tensor& index, const Tensor& weight, const EmbeddingOptions& o) {
  const Called called("embedding");
  require_defined("embedding", index, weight);
  check_options(where("embedding"), o);
  Tensor rows = rows_at(index, weight, o.sparse);
  if (o.max_norm) rows = scaled_to(rows, *o.max_norm, o.norm_type);
  if (o.scale_grad_by_freq) {
    const Tensor share = reciprocal(frequency(index, weight.size(0), rows.dtype()));
    const Tensor still = detach(rows);
    rows = still + (rows - still) * cast(unsqueeze(share, -1), rows.dtype());
  }
  if (!o.padding_index) return rows;
  return where(unsqueeze(eq(index, padding_row(*o.padding_index, weight)), -1), detach(rows), rows);
}

Tensor embedding_bag(const Tensor& index, const Tensor& weight, const Tensor& offsets,
                     const EmbeddingBagOptions& o, const Tensor& per_sample_weights) {
  const Called called("embedding_bag");
  require_defined("embedding_bag", index, weight);
  check_bags(where("embedding_bag"), index, offsets, o, per_sample_weights);
  Tensor rows = embedding(
      index, weight,
      EmbeddingOptions{o.padding_index, o.max_norm, o.norm_type, o.scale_grad_by_freq, o.sparse});
  Tensor counts;
  if (o.padding_index) counts = ne(index, padding_row(*o.padding_index, weight));
  if (!offsets.defined())
    return reduced_bags(weighted(rows, per_sample_weights, counts), counts, o.mode);
  if (offsets.size(0) == 0) return zeros({0, weight.size(1)}, rows.dtype());
  // If the end is among the offsets, the rows after it form an extra bag, which is dropped.
  const std::int64_t bags = offsets.size(0) - (o.include_last_offset ? 1 : 0);
  const Tensor bag = bags_of(index.size(0), offsets);
  if (o.include_last_offset) {
    const Tensor inside = lt(bag, bags);
    counts = counts.defined() ? logical_and(counts, inside) : inside;
  }
  return reduced_rows(weighted(rows, per_sample_weights, counts), bag, bags, counts, o.mode);
}

}  // namespace tenon

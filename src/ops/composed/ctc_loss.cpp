// Connectionist temporal classification: a scan over time of log-probabilities of prefixes.
//
// Between the labels, and at both ends, stand blanks: L = 2 S + 1 states. A state is reached from
// itself, from the one in front of it, and from the label in front of that, unless it is equal.
#include <limits>

#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/loops.h>
#include <tenon/losses.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/losses.h"

namespace tenon {
namespace {

// Stands for log(0): sums of it stay finite, so that gradients are not NaN.
constexpr double kImpossible = -1e30;

void require_lengths(const char* what, const Tensor& lengths, std::int64_t n) {
  if (lengths.dtype() != DType::Int64 && lengths.dtype() != DType::Int32)
    throw make_error<DTypeError>(where("ctc_loss"), ": ", what, " are int64 or int32, not ",
                                 lengths.dtype());
  if (lengths.shape() != Shape{n})
    throw make_error<ShapeError>(where("ctc_loss"), ": ", what, " are ", lengths.shape(),
                                 ", must be [", n, "]");
}

void require_ctc_inputs(const Tensor& log_probabilities, const Tensor& targets,
                        const Tensor& input_lengths, const Tensor& target_lengths,
                        const CtcOptions& o) {
  const OpPlace at = where("ctc_loss");
  require_defined("ctc_loss", log_probabilities, targets, input_lengths, target_lengths);
  if (!is_floating(log_probabilities.dtype()))
    throw make_error<DTypeError>(at, ": takes floating log-probabilities, not ",
                                 log_probabilities.dtype());
  if (log_probabilities.rank() != 3 || log_probabilities.size(0) < 1)
    throw make_error<ShapeError>(at, ": log-probabilities are [T, N, C] with T >= 1, not ",
                                 log_probabilities.shape());
  const std::int64_t n = log_probabilities.size(1), classes = log_probabilities.size(2);
  if (targets.dtype() != DType::Int64 && targets.dtype() != DType::Int32)
    throw make_error<DTypeError>(at, ": targets are int64 or int32, not ", targets.dtype());
  if (targets.rank() != 2 || targets.size(0) != n)
    throw make_error<ShapeError>(at, ": targets are ", targets.shape(), ", must be [", n, ", S]");
  if (o.blank < 0 || o.blank >= classes)
    throw make_error<ValueError>(at, ": the blank ", o.blank, " is outside ", classes, " classes");
  require_lengths("the lengths of the inputs", input_lengths, n);
  require_lengths("the lengths of the targets", target_lengths, n);
}

// The lengths unchanged; one above `most`, or below 0, is refused at run time.
Tensor lengths_within(const Tensor& lengths, std::int64_t most) {
  return require_classes("ctc_loss", cast(lengths, DType::Int64), most + 1);
}

// x moved by `by` states to the right, for states [N, L].
Tensor moved(const Tensor& x, std::int64_t by) {
  return slice(pad(x, {by, 0}, kImpossible), 1, 0, x.size(1));
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcOptions& o) {
  const Called called("ctc_loss");
  require_ctc_inputs(log_probabilities, targets, input_lengths, target_lengths, o);
  const std::int64_t time = log_probabilities.size(0), n = log_probabilities.size(1),
                     classes = log_probabilities.size(2);
  const std::int64_t labels = targets.size(1), states = 2 * labels + 1;
  const bool upcasts = item_size(log_probabilities.dtype()) == 2;
  const Tensor logp = upcasts ? cast(log_probabilities, DType::Float32) : log_probabilities;
  const Tensor steps = lengths_within(input_lengths, time),
               length = lengths_within(target_lengths, labels);
  // Targets after a sample's length are not read; they count as blanks.
  const Tensor inside = arange(0, labels) < unsqueeze(length, 1);
  const Tensor known =
      require_classes("ctc_loss", where(inside, cast(targets, DType::Int64), o.blank), classes);
  const Tensor extended =
      pad(reshape(stack({full({n, labels}, o.blank, DType::Int64), known}, 2), {n, 2 * labels}),
          {0, 1}, o.blank);  // [N, L]: blank, label, blank, …
  const Tensor before = slice(pad(extended, {2, 0}, o.blank), 1, 0, states);
  const Tensor skips = ne(extended, o.blank) & ne(extended, before);
  const Tensor emitted =
      gather(logp, 2, expand(unsqueeze(extended, 0), {time, n, states}));  // [T, N, L]
  const Tensor number = arange(0, states);
  const Tensor begins = (number < 2) & (number <= unsqueeze(length * 2, 1));
  const Tensor first = where(begins, select(emitted, 0, 0), kImpossible);
  const ScanStepOfOne step = [&](const Tensor& carry, const Tensor& x) {
    const Tensor row = slice(x, 1, 0, states), is_running = slice(x, 1, states, states + 1);
    const Tensor reached =
        logaddexp(logaddexp(carry, moved(carry, 1)), where(skips, moved(carry, 2), kImpossible));
    const Tensor next = where(gt(is_running, 0), maximum(reached + row, kImpossible), carry);
    return std::pair(next, sum(next, {1}));
  };
  Tensor last = first;
  if (time > 1) {
    const Tensor moment = reshape(arange(1, time), {time - 1, 1});
    const Tensor is_running = cast(moment < unsqueeze(steps, 0), logp.dtype());  // [T - 1, N]
    const Tensor rows = concat({slice(emitted, 0, 1, time), unsqueeze(is_running, 2)}, 2);
    last = scan(step, first, rows).first;
  }
  const Tensor end = unsqueeze(length * 2, 1);
  const Tensor in_blank = gather(last, 1, end),
               in_label = where(end > 0, gather(last, 1, maximum(end - 1, 0)), kImpossible);
  Tensor losses = -reshape(logaddexp(in_blank, in_label), {n});
  // No step at all fits the empty target only.
  losses = where(eq(steps, 0), where(eq(length, 0), 0.0, full_like(losses, -kImpossible)), losses);
  losses = where(losses > -kImpossible / 2,
                 o.zero_infinity ? 0.0 : std::numeric_limits<double>::infinity(), losses);
  if (o.reduction == Reduction::Mean) losses = losses / cast(maximum(length, 1), losses.dtype());
  if (upcasts) losses = cast(losses, log_probabilities.dtype());
  return reduced_loss(losses, o.reduction);
}

}  // namespace tenon

// The search brackets an acceptable point and then narrows the bracket by cubic interpolation.
#include "optim/line_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tenon::optim {
namespace {

constexpr double kDecrease = 1e-4, kCurvature = 0.9;  // c1 and c2 of the conditions

// The minimum of the cubic through two points with slopes, inside [low, high].
double interpolated(const LinePoint& a, const LinePoint& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const auto &left = a.t <= b.t ? a : b, &right = a.t <= b.t ? b : a;
  const double t = right.t - (right.t - left.t) *
                                 ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2));
  return std::min(std::max(t, low), high);
}

// Keeps a new point away from the ends of the bracket if the last one was there too.
double away_from_ends(double t, double low, double high, bool& was_near) {
  const double margin = 0.1 * (high - low);
  if (!(std::min(high - t, t - low) < margin)) {
    was_near = false;
    return t;
  }
  if (!was_near && t < high && t > low) {
    was_near = true;
    return t;
  }
  was_near = false;
  return std::abs(t - high) < std::abs(t - low) ? high - margin : low + margin;
}

class Search {
 public:
  Search(const std::function<LinePoint(double t)>& at, LinePoint start, const LineSearch& options)
      : at_(at), start_(std::move(start)), options_(options) {}

  LinePoint run(double first) {
    LinePoint previous = start_, point = at_(first);
    int count = 0;
    for (; count < options_.most; ++count) {
      if (is_too_high(point) || (count > 1 && point.loss >= previous.loss))
        return narrow(previous, point, count);
      if (is_flat(point)) return point;
      if (point.slope >= 0) return narrow(previous, point, count);
      const double next =
          interpolated(previous, point, point.t + 0.01 * (point.t - previous.t), point.t * 10);
      previous = std::move(point);
      point = at_(next);
    }
    return start_.loss <= point.loss ? start_ : point;
  }

 private:
  bool is_too_high(const LinePoint& p) const {
    return p.loss > start_.loss + kDecrease * p.t * start_.slope;
  }
  bool is_flat(const LinePoint& p) const { return std::abs(p.slope) <= -kCurvature * start_.slope; }

  LinePoint narrow(LinePoint low, LinePoint high, int count) {
    if (high.loss < low.loss) std::swap(low, high);
    bool was_near = false;
    for (; count < options_.most; ++count) {
      if (std::abs(high.t - low.t) * options_.largest < options_.tolerance_change) break;
      const double from = std::min(low.t, high.t), to = std::max(low.t, high.t);
      LinePoint point = at_(away_from_ends(interpolated(low, high, from, to), from, to, was_near));
      if (is_too_high(point) || point.loss >= low.loss) {
        high = std::move(point);
        if (high.loss < low.loss) std::swap(low, high);
        continue;
      }
      const bool done = is_flat(point);
      if (!done && point.slope * (high.t - low.t) >= 0) high = std::move(low);
      low = std::move(point);
      if (done) break;
    }
    return low;
  }

  const std::function<LinePoint(double t)>& at_;
  LinePoint start_;
  LineSearch options_;
};

}  // namespace

LinePoint strong_wolfe(const std::function<LinePoint(double t)>& at, const LinePoint& start,
                       double first, const LineSearch& options) {
  return Search(at, start, options).run(first);
}

}  // namespace tenon::optim

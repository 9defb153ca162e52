// Each rule makes one pass over the axis. Lanes (rows or neighbouring elements) run side by side.
#include "cpu/kernels/rows/recurrence.h"

#include <algorithm>
#include <type_traits>

#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "base/thread_pool.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kRows = 8;          // of the last axis, side by side
constexpr std::int64_t kColumns = 256;     // neighbours, side by side
constexpr std::int64_t kElements = 16384;  // least number of elements for another thread

template <class T>
using Sum = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;

// Rules: the state of a lane, its start from the first element, and its next value from element t.
template <class T>
struct SumRule {
  using State = Sum<T>;
  using Out = T;
  static State first(const T* x, const T*, std::int64_t) { return static_cast<State>(*x); }
  static State next(State s, const T* x, const T*, std::int64_t) {
    return s + static_cast<State>(*x);
  }
  static Out out(State s) { return static_cast<Out>(s); }
};

template <class T>
struct ProductRule : SumRule<T> {
  using State = Sum<T>;
  static State next(State s, const T* x, const T*, std::int64_t) {
    return s * static_cast<State>(*x);
  }
};

template <class T>
struct LinearRule : SumRule<T> {
  using State = Sum<T>;
  static State first(const T*, const T* b, std::int64_t) { return static_cast<State>(*b); }
  static State next(State s, const T* a, const T* b, std::int64_t) {
    const State factor = static_cast<State>(*a), summand = static_cast<State>(*b);
    return factor == State{0} ? summand : s * factor + summand;
  }
};

template <class T, bool kLargest>
struct IndexRule {
  struct State {
    T best;
    std::int64_t index;
  };
  using Out = std::int64_t;
  static State first(const T* x, const T*, std::int64_t t) { return {*x, t}; }
  static State next(State s, const T* x, const T*, std::int64_t t) {
    const bool takes = *x != *x || (kLargest ? *x >= s.best : *x <= s.best);
    return takes ? State{*x, t} : s;
  }
  static Out out(State s) { return s.index; }
};

template <class Rule, class T>
class Walk {
 public:
  Walk(const RecurrenceShape& shape, const T* a, const T* b, typename Rule::Out* out)
      : shape_(shape), a_(a), b_(b), out_(out), step_(shape.reverse ? -shape.inner : shape.inner) {}

  void run() const {
    if (shape_.inner == 1) return rows();
    const std::int64_t blocks = divide_up(shape_.inner, kColumns);
    in_chunks(shape_.outer * blocks, shape_.size * std::min(shape_.inner, kColumns),
              [&](std::int64_t chunk) {
                const std::int64_t j = chunk % blocks * kColumns;
                lanes<1>(chunk / blocks, j, std::min(kColumns, shape_.inner - j));
              });
  }

 private:
  template <class F>
  static void in_chunks(std::int64_t count, std::int64_t elements, F&& f) {
    const std::int64_t each = std::max<std::int64_t>(1, kElements / elements);
    parallel_for(divide_up(count, each), [&](std::int64_t block, int) {
      for (std::int64_t c = block * each; c < std::min(count, (block + 1) * each); ++c) f(c);
    });
  }

  void rows() const {
    in_chunks(divide_up(shape_.outer, kRows), kRows * shape_.size, [&](std::int64_t group) {
      const std::int64_t row = group * kRows;
      if (row + kRows <= shape_.outer) return lanes<kRows>(row, 0, kRows);
      for (std::int64_t r = row; r < shape_.outer; ++r) lanes<1>(r, 0, 1);
    });
  }

  // Processes neighbouring lanes from [row, ., j] on or, if kAtOnce is above 1, kAtOnce rows.
  template <std::int64_t kAtOnce>
  void lanes(std::int64_t row, std::int64_t j, std::int64_t count) const {
    constexpr bool kApart = kAtOnce > 1;
    const std::int64_t n = kApart ? kAtOnce : count, pitch = kApart ? shape_.size : 1;
    std::int64_t at = row * shape_.size * shape_.inner + j, t = 0;
    if (shape_.reverse) t = shape_.size - 1, at += t * shape_.inner;
    typename Rule::State state[kApart ? kAtOnce : kColumns];
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t i = at + k * pitch;
      state[k] = Rule::first(a_ + i, b_ + i, t);
      out_[i] = Rule::out(state[k]);
    }
    const std::int64_t by = shape_.reverse ? -1 : 1;
    for (std::int64_t done = 1; done < shape_.size; ++done) {
      at += step_, t += by;
#pragma GCC ivdep
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t i = at + k * pitch;
        state[k] = Rule::next(state[k], a_ + i, b_ + i, t);
        out_[i] = Rule::out(state[k]);
      }
    }
  }

  const RecurrenceShape& shape_;
  const T *a_, *b_;
  typename Rule::Out* out_;
  std::int64_t step_;
};

template <class T>
void run_typed(const RecurrenceShape& shape, std::span<const std::byte* const> inputs,
               std::byte* out) {
  const auto* a = reinterpret_cast<const T*>(inputs.front());
  const auto* b = reinterpret_cast<const T*>(inputs.back());
  const auto walk = [&]<class Rule>(Rule) {
    Walk<Rule, T>(shape, a, b, reinterpret_cast<typename Rule::Out*>(out)).run();
  };
  switch (shape.kind) {
    case RecurrenceKind::Sum:
      return walk(SumRule<T>());
    case RecurrenceKind::Product:
      return walk(ProductRule<T>());
    case RecurrenceKind::Linear:
      return walk(LinearRule<T>());
    case RecurrenceKind::Largest:
      return walk(IndexRule<T, true>());
    case RecurrenceKind::Smallest:
      return walk(IndexRule<T, false>());
  }
}

}  // namespace

void run_recurrence(const RecurrenceShape& shape, DType dtype,
                    std::span<const std::byte* const> inputs, std::byte* out) {
  switch (dtype) {
    case DType::Float32:
      return run_typed<float>(shape, inputs, out);
    case DType::Float64:
      return run_typed<double>(shape, inputs, out);
    case DType::Int64:
      return run_typed<std::int64_t>(shape, inputs, out);
    default:
      throw InternalError(cat("no recurrence of ", dtype));
  }
}

}  // namespace tenon::cpu

// Finds the tensors inside a value, for modules with any inputs and outputs (nn::ModuleOf). A value
// may be a Tensor; a range, pair, tuple or optional of values; or a plain struct of up to ten
// members; nested to any depth. Members of other types (numbers, names) are skipped.
//
// Another type names its tensors with a function in its own namespace:
//   template <class F> void each_tensor(MyState& s, F&& f) { f(s.hidden); f(s.cell); }
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include <tenon/tensor.h>

namespace tenon::nn {
/// Implementation.
namespace detail {

struct AnyMember {
  template <class T>
  operator T() const;  // NOLINT: converts to a member of any type; never called
};

template <class T, class... M>
constexpr int member_count() {
  if constexpr (sizeof...(M) > 10)
    return -1;
  else if constexpr (requires { T{M{}..., AnyMember{}}; })
    return member_count<T, M..., AnyMember>();
  else
    return static_cast<int>(sizeof...(M));
}

struct Nothing {
  void operator()(const Tensor&) const {}
};

template <class T>
concept Iterable = requires(T& v) {
  v.begin();
  v.end();
};
template <class T>
concept Nullable = requires(T& v) {
  v.has_value();
  *v;
};
template <class T>
concept TupleLike = requires {
  std::tuple_size<std::remove_const_t<T>>::value;
};
template <class T>
concept Described = requires(T& v) {
  each_tensor(v, Nothing{});
};

template <class T, class F>
void visit_tensors(T& value, F&& f);

template <class T, class F>
void visit_members(T& value, F&& f) {
  constexpr int kMembers = member_count<std::remove_const_t<T>>();
  static_assert(kMembers >= 0,
                "a struct of more than ten members: write each_tensor() for it (each_tensor.h)");
  const auto all = [&f](auto&... member) { (visit_tensors(member, f), ...); };
  if constexpr (kMembers == 1) {
    auto& [a] = value;
    all(a);
  } else if constexpr (kMembers == 2) {
    auto& [a, b] = value;
    all(a, b);
  } else if constexpr (kMembers == 3) {
    auto& [a, b, c] = value;
    all(a, b, c);
  } else if constexpr (kMembers == 4) {
    auto& [a, b, c, d] = value;
    all(a, b, c, d);
  } else if constexpr (kMembers == 5) {
    auto& [a, b, c, d, e] = value;
    all(a, b, c, d, e);
  } else if constexpr (kMembers == 6) {
    auto& [a, b, c, d, e, g] = value;
    all(a, b, c, d, e, g);
  } else if constexpr (kMembers == 7) {
    auto& [a, b, c, d, e, g, h] = value;
    all(a, b, c, d, e, g, h);
  } else if constexpr (kMembers == 8) {
    auto& [a, b, c, d, e, g, h, i] = value;
    all(a, b, c, d, e, g, h, i);
  } else if constexpr (kMembers == 9) {
    auto& [a, b, c, d, e, g, h, i, j] = value;
    all(a, b, c, d, e, g, h, i, j);
  } else if constexpr (kMembers == 10) {
    auto& [a, b, c, d, e, g, h, i, j, k] = value;
    all(a, b, c, d, e, g, h, i, j, k);
  }
}

/// Calls f with each defined tensor inside the value, in order.
template <class T, class F>
void visit_tensors(T& value, F&& f) {
  if constexpr (std::is_same_v<std::remove_const_t<T>, Tensor>) {
    if (value.defined()) f(value);
  } else if constexpr (Described<T>) {
    each_tensor(value, [&f](auto& tensor) { visit_tensors(tensor, f); });
  } else if constexpr (Iterable<T>) {
    for (auto& element : value) visit_tensors(element, f);
  } else if constexpr (Nullable<T>) {
    if (value.has_value()) visit_tensors(*value, f);
  } else if constexpr (TupleLike<T>) {
    std::apply([&f](auto&... element) { (visit_tensors(element, f), ...); }, value);
  } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<std::remove_const_t<T>>) {
    visit_members(value, f);
  }
}

}  // namespace detail
}  // namespace tenon::nn

// compile() for functions with typed arguments and results.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/compute.h>
#include <tenon/export.h>
#include <tenon/signature.h>
#include <tenon/tensor.h>

namespace tenon {
/// Implementation.
namespace detail {

/// The tensors inside a value, and the sizes of the lists and optionals inside it. Is filled from a
/// value, or fills one.
class TensorParts {
 public:
  /// Empty, to be filled.
  TensorParts() = default;
  /// Fills values from these parts.
  TensorParts(std::vector<Tensor> given, std::vector<std::int64_t> of_lists)
      : tensors(std::move(given)), sizes(std::move(of_lists)), fills_(true) {}

  /// Visits everything inside the value, in order.
  template <class T>
  void visit(T& value);

  std::vector<Tensor> tensors;
  std::vector<std::int64_t> sizes;

 private:
  TENON_API std::size_t size(std::size_t own);
  bool fills_ = false;
  std::size_t next_tensor_ = 0, next_size_ = 0;
};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
void TensorParts::visit(T& value) {
  if constexpr (std::is_same_v<T, Tensor>) {
    if (fills_)
      value = tensors[next_tensor_++];
    else
      tensors.push_back(value);
  } else if constexpr (IsVector<T>::value) {
    value.resize(size(value.size()));
    for (auto& element : value) visit(element);
  } else if constexpr (IsOptional<T>::value) {
    if (size(value.has_value() ? 1 : 0) == 0) return value.reset();
    if (!value.has_value()) value.emplace();
    visit(*value);
  } else {
    static_assert(
        requires { std::tuple_size<T>::value; },
        "a compiled function takes and returns tensors, and vectors, tuples, pairs, arrays "
        "and optionals of them: pass a number as a tensor, or capture it and list it as a "
        "guard");
    std::apply([&](auto&... element) { (visit(element), ...); }, value);
  }
}

/// Runs a function on parts: one compiled function for each list of sizes.
class TENON_API CompiledParts {
 public:
  using Function = std::function<TensorParts(TensorParts)>;
  /// Compiles `f` at its first call.
  CompiledParts(Function f, CompiledFunction::Guards guards);
  /// Calls the function.
  TensorParts operator()(TensorParts arguments) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace detail

/// The type of compiled functions with arguments and results of their own types.
template <class R, class Arguments>
class TypedFunction;
/// Has the types of the function that it was made from, and the rules of CompiledFunction. Lengths
/// of vectors and the presence of optionals count as shapes: another length is traced again.
template <class R, class... A>
class TypedFunction<R, std::tuple<A...>> {
 public:
  /// Made by compile().
  explicit TypedFunction(detail::CompiledParts parts) : parts_(std::move(parts)) {}
  /// Calls the function.
  R operator()(const A&... arguments) const {
    std::tuple<A...> copies(arguments...);
    detail::TensorParts given;
    given.visit(copies);
    detail::TensorParts out = parts_(std::move(given));
    R result{};
    out.visit(result);
    return result;
  }

 private:
  detail::CompiledParts parts_;
};

/// Compiles a function of tensors, and of vectors, tuples, pairs, arrays and optionals of tensors,
/// nested to any depth: `compile([](Tensor s, Tensor a) { return std::tuple(s * a, s + a); })`. The
/// types of the parameters must be written out. Numbers are passed as tensors, or captured and
/// listed in `guards`.
template <class F>
requires(!std::convertible_to<F, CompiledFunction::Body> && requires {
  typename detail::Signature<std::decay_t<F>>::Result;
}) auto compile(F f, CompiledFunction::Guards guards = {}) {
  using Of = detail::Signature<std::decay_t<F>>;
  using Result = typename Of::Result;
  const auto on_parts = [f = std::move(f)](detail::TensorParts given) {
    typename Of::Arguments arguments;
    given.visit(arguments);
    Result result = std::apply(f, arguments);
    detail::TensorParts out;
    out.visit(result);
    return out;
  };
  return TypedFunction<Result, typename Of::Arguments>(
      detail::CompiledParts(on_parts, std::move(guards)));
}

}  // namespace tenon

// The argument and result types of a function object, for templates that take functions.
#pragma once

#include <tuple>
#include <type_traits>

namespace tenon {
/// Implementation.
namespace detail {
/// @cond
// Of a function, or of a function object with one call operator that is no template. It has no
// members for any other type, so that a requires-expression can test for them.
template <class F>
struct Signature {};
template <class F>
requires requires { &F::operator(); }
struct Signature<F> : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Result = std::remove_cvref_t<R>;
  using Arguments = std::tuple<std::remove_cvref_t<A>...>;
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
/// @endcond
}  // namespace detail
}  // namespace tenon

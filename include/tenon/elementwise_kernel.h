// ElementwiseKernel: an element-wise operation from a scalar expression of the program that uses
// the library. The planner fuses it with the operations around it, on CPUs and on GPUs.
//
// On a CPU, a function object computes the elements. On a GPU, the same expression as text becomes
// a part of a generated kernel, which NVRTC compiles. TENON_ELEMENTWISE writes both from one
// expression. docs/functions.md has examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/export.h>
#include <tenon/tensor.h>

namespace tenon {

/// Implementation.
namespace detail {

using ElementLoop = void (*)(std::int64_t n, void* out, const void* a, const void* b,
                             const void* c);

/// The number of arguments that F takes: 1 to 3; 0 for any other function.
template <class F>
constexpr std::size_t element_arity() {
  if constexpr (std::is_invocable_v<const F&, float>)
    return 1;
  else if constexpr (std::is_invocable_v<const F&, float, float>)
    return 2;
  else
    return std::is_invocable_v<const F&, float, float, float> ? 3 : 0;
}

/// out[i] = F(a[i], …). `out` may be one of the arguments.
template <class F, class T>
void element_loop(std::int64_t n, void* out, [[maybe_unused]] const void* a,
                  [[maybe_unused]] const void* b, [[maybe_unused]] const void* c) {
  const F f{};
  T* const y = static_cast<T*>(out);
  const T* const p = static_cast<const T*>(a);
  [[maybe_unused]] const T* const q = static_cast<const T*>(b);
  [[maybe_unused]] const T* const r = static_cast<const T*>(c);
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#elif defined(__GNUC__)
#pragma GCC ivdep
#endif
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (element_arity<F>() == 1)
      y[i] = static_cast<T>(f(p[i]));
    else if constexpr (element_arity<F>() == 2)
      y[i] = static_cast<T>(f(p[i], q[i]));
    else
      y[i] = static_cast<T>(f(p[i], q[i], r[i]));
  }
}

/// The parts of an ElementFormula.
struct ElementParts {
  ElementLoop f32 = nullptr, f64 = nullptr;
  std::size_t arity = 0;            // of the function
  std::string text;                 // CUDA C++; empty: none
  std::vector<std::string> inputs;  // names in the text
};

}  // namespace detail

/// What an ElementwiseKernel computes for each element, for one or both kinds of device.
class ElementFormula {
 public:
  /// `cpu` is a function object without members, such as a lambda that captures nothing. It takes
  /// one to three numbers, all float or all double, and returns a number: `[](auto x) { … }`. Its
  /// result must depend on the numbers only, and it must not throw.
  ///
  /// `cuda` is the same as CUDA C++: an expression, or, if the text contains a semicolon,
  /// statements that return the result. `inputs` names its numbers, and `T` is their type, float or
  /// double. The functions of `<cmath>` are those that the library's own operations use. If the
  /// text is "", inputs on a GPU are copied to the host, and the result is copied back.
  template <class F>
  ElementFormula(F cpu, std::string cuda, std::vector<std::string> inputs) {
    static_assert(std::is_empty_v<F> && std::is_default_constructible_v<F>,
                  "the function must not capture or hold anything: pass numbers as tensors");
    static_assert(detail::element_arity<F>() != 0,
                  "the function takes one to three numbers, float or double");
    (void)cpu;
    parts_ = {detail::element_loop<F, float>, detail::element_loop<F, double>,
              detail::element_arity<F>(), std::move(cuda), std::move(inputs)};
  }
  /// For GPUs only.
  ElementFormula(std::string cuda, std::vector<std::string> inputs) {
    parts_.text = std::move(cuda);
    parts_.inputs = std::move(inputs);
  }

  /// Implementation.
  const detail::ElementParts& parts() const noexcept { return parts_; }

 private:
  detail::ElementParts parts_;
};

/// An element-wise operation of one to three tensors of floating-point numbers.
///
/// The tensors are promoted to one dtype and broadcast. float16 and bfloat16 elements are computed
/// in float32 and rounded when they are stored, as in the library's own operations. PyTorch:
/// `torch.cuda.jiterator`, `torch.utils.cpp_extension`.
class TENON_API ElementwiseKernel {
 public:
  /// An operation that errors and plans call `name`. Without partial derivatives, grad() throws
  /// NotSupported where it meets a result.
  ///
  /// `partials` are the derivatives with respect to each input, as kernels of the same inputs. For
  /// second derivatives the partial derivatives need partial derivatives of their own.
  ///
  /// Throws ValueError if a name is no C++ identifier, if the number of inputs is not one to three
  /// or not that of the function, if the text contains `#`, and if the number of partial
  /// derivatives is not the number of inputs.
  ElementwiseKernel(const std::string& name, const ElementFormula& formula,
                    std::vector<ElementwiseKernel> partials = {});

  /// The result for these tensors, in their promoted dtype and broadcast shape.
  ///
  /// Throws ValueError for a wrong number of inputs, DTypeError for integers, ShapeError if the
  /// shapes cannot be broadcast, and NotSupported on the CPU if the formula is for GPUs only. A
  /// text that does not compile throws ValueError with the compiler's messages when the result is
  /// computed.
  Tensor apply(TensorList inputs) const;
  /// The same for tensors one by one.
  template <class... T>
  Tensor operator()(const T&... inputs) const {
    return apply({Tensor(inputs)...});
  }

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

}  // namespace tenon

/// Implementation.
/// @{
#define TENON_ELEMENTWISE_1(a) []<class T>([[maybe_unused]] T a)
#define TENON_ELEMENTWISE_2(a, b) []<class T>([[maybe_unused]] T a, [[maybe_unused]] T b)
#define TENON_ELEMENTWISE_3(a, b, c) \
  []<class T>([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c)
#define TENON_ELEMENTWISE_NAMES_1(a) \
  { #a }
#define TENON_ELEMENTWISE_NAMES_2(a, b) \
  { #a, #b }
#define TENON_ELEMENTWISE_NAMES_3(a, b, c) \
  { #a, #b, #c }
#define TENON_ELEMENTWISE_PICK(a, b, c, picked, ...) picked
#define TENON_ELEMENTWISE_LAMBDA(...)                                           \
  TENON_ELEMENTWISE_PICK(__VA_ARGS__, TENON_ELEMENTWISE_3, TENON_ELEMENTWISE_2, \
                         TENON_ELEMENTWISE_1, none)                             \
  (__VA_ARGS__)
#define TENON_ELEMENTWISE_NAMES(...)                                                        \
  TENON_ELEMENTWISE_PICK(__VA_ARGS__, TENON_ELEMENTWISE_NAMES_3, TENON_ELEMENTWISE_NAMES_2, \
                         TENON_ELEMENTWISE_NAMES_1, none)                                   \
  (__VA_ARGS__)
/// @}

/// An ElementFormula for CPUs and GPUs from one expression: `TENON_ELEMENTWISE((x, y), x *
/// tanh(y))`. Needs `<cmath>`. The names of one to three inputs come first, in parentheses. `T` is
/// their type: float or double. Constants are written `T(0.5)`, because `0.5` makes the expression
/// double. Functions: abs, exp, exp2, expm1, log, log1p, sqrt, sin, cos, tan, asin, acos, atan,
/// atan2, sinh, cosh, tanh, erf, floor, ceil, trunc, pow.
#define TENON_ELEMENTWISE(inputs, ...)                                                            \
  ::tenon::ElementFormula(                                                                        \
      TENON_ELEMENTWISE_LAMBDA inputs {                                                           \
        using std::abs, std::exp, std::exp2, std::expm1, std::log, std::log1p, std::sqrt,         \
            std::sin, std::cos, std::tan, std::asin, std::acos, std::atan, std::atan2, std::sinh, \
            std::cosh, std::tanh, std::erf, std::floor, std::ceil, std::trunc, std::pow;          \
        return static_cast<T>(__VA_ARGS__);                                                       \
      },                                                                                          \
      #__VA_ARGS__, TENON_ELEMENTWISE_NAMES inputs)

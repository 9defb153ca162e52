// vmap(): maps a function over a batch axis.
//
// docs/derivatives.md has examples, per-sample gradients among them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/export.h>
#include <tenon/function.h>
#include <tenon/signature.h>
#include <tenon/tensor.h>

namespace tenon {

/// What random draws do inside vmap().
enum class Randomness : std::uint8_t {
  Error,     ///< A draw throws NotSupported.
  Same,      ///< All samples get the same numbers.
  Different  ///< Each sample gets its own numbers; sample 0 gets those of a call without vmap().
};

/// An entry of VmapOptions::in_axes: every sample gets the whole tensor. PyTorch: `None`.
inline constexpr int kNotMapped = std::numeric_limits<int>::min();

/// Options of vmap().
struct VmapOptions {
  std::vector<int> in_axes{};   ///< The batch axis of each argument; empty: 0 for all.
  std::vector<int> out_axes{};  ///< The batch axis of each result; empty: 0 for all.
  Randomness randomness = Randomness::Error;  ///< What random draws do.
};

/// Implementation.
namespace detail {

TENON_API std::vector<Tensor> vmap_lists(const TensorFunction& f,
                                         const std::vector<Tensor>& arguments,
                                         const VmapOptions& options);

inline std::vector<Tensor> arguments_list(const std::vector<Tensor>& all) { return all; }
template <class... T>
std::vector<Tensor> arguments_list(const T&... each) {
  return {each...};
}

template <class R>
struct FromList;
template <>
struct FromList<Tensor> {
  static Tensor of(std::vector<Tensor> list) { return std::move(list[0]); }
};
template <>
struct FromList<std::vector<Tensor>> {
  static std::vector<Tensor> of(std::vector<Tensor> list) { return list; }
};
template <class... T>
struct FromList<std::tuple<T...>> {
  static std::tuple<T...> of(const std::vector<Tensor>& list) {
    return [&]<std::size_t... k>(std::index_sequence<k...>) { return std::tuple<T...>{list[k]...}; }
    (std::index_sequence_for<T...>());
  }
};

}  // namespace detail

/// The type of the functions that vmap() returns.
template <class R, class Arguments>
class MappedFunction;
/// A function over batches, with the parameters and the result type of the function of one sample.
template <class R, class... A>
class MappedFunction<R, std::tuple<A...>> {
 public:
  /// Made by vmap().
  MappedFunction(TensorFunction f, VmapOptions options)
      : function_(std::move(f)), options_(std::move(options)) {}
  /// The results for a batch.
  R operator()(const A&... arguments) const {
    return detail::FromList<R>::of(
        detail::vmap_lists(function_, detail::arguments_list(arguments...), options_));
  }

 private:
  TensorFunction function_;
  VmapOptions options_;
};

/// Maps a function of one sample over a batch: `vmap(f)(x)` is the stack of f(x[0]), f(x[1]), ….
/// `f` is called once, to record its graph; then every operation of the graph is replaced by one
/// over the whole batch. An operation without a batched form runs as a scan() over the samples:
/// host code, and attention with the same dropout for all samples. `f` takes tensors or a vector of
/// tensors (TensorFunction) and must not read values of its arguments. Gradients work inside `f`
/// (per-sample gradients) and through the result. Tensors that `f` captures are the same for all
/// samples. Calls nest. A call throws ValueError if no argument is mapped or an option does not
/// fit, ShapeError if the sizes of batch axes differ, and NotSupported for a random draw
/// (VmapOptions::randomness), for an exchange between devices, and if `f` assigns a variable a
/// value that differs between samples, as batch normalization does in training. PyTorch:
/// `torch.func.vmap`.
template <class F>
auto vmap(F f, VmapOptions options = {}) {
  using Of = detail::Signature<std::decay_t<F>>;
  return MappedFunction<typename Of::Result, typename Of::Arguments>(std::move(f),
                                                                     std::move(options));
}

}  // namespace tenon

// More ways to create tensors: identity matrices, evenly spaced numbers, permutations and samples.
// Conventions, dtypes and errors are those of ops.h.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/ops.h>

namespace tenon {

/// A matrix [rows, columns] with ones on the diagonal and zeros elsewhere. Without `columns` it is
/// square.
TENON_API Tensor eye(std::int64_t rows, std::optional<std::int64_t> columns = {},
                     DType dtype = DType::Float32);
/// The numbers 0, 1, … up to but not including `end`.
TENON_API Tensor arange(Scalar end, DType dtype = DType::Int64);
/// `count` evenly spaced numbers from `start` to `end`, both included; [count]. The distances are
/// computed in float64. Throws ValueError for a negative count.
TENON_API Tensor linspace(double start, double end, std::int64_t count,
                          DType dtype = DType::Float32);
/// base^e for the exponents e = linspace(start, end, count); [count].
TENON_API Tensor logspace(double start, double end, std::int64_t count, double base = 10,
                          DType dtype = DType::Float32);
/// A tensor of the shape and dtype of `x`, filled with one value.
TENON_API Tensor full_like(const Tensor& x, Scalar value);
/// Uniform random numbers in [0, 1) of the shape and dtype of `x`.
TENON_API Tensor rand_like(const Tensor& x, const OptionalGenerator& generator = {});
/// Standard normal random numbers of the shape and dtype of `x`.
TENON_API Tensor randn_like(const Tensor& x, const OptionalGenerator& generator = {});
/// Random integers in [low, high) of the shape and dtype of `x`.
TENON_API Tensor randint_like(const Tensor& x, std::int64_t low, std::int64_t high,
                              const OptionalGenerator& generator = {});
/// A random order of the numbers 0 to count - 1, int64 [count].
TENON_API Tensor randperm(std::int64_t count, const OptionalGenerator& generator = {});
/// Random elements of the shape and dtype of `probabilities`: 1 with the probability at the same
/// index, else 0. PyTorch: `torch.bernoulli`.
TENON_API Tensor bernoulli(const Tensor& probabilities, const OptionalGenerator& generator = {});
/// Draws `count` classes from each row of `weights` [classes] or [rows, classes], which need not
/// sum to 1; int64 [count] or [rows, count]. Without replacement, a class is drawn at most once (by
/// exponential races, Efraimidis and Spirakis, 2006), and `count` must not exceed the classes.
/// Negative weights count as 0. Throws ValueError when it is evaluated if a row has too few classes
/// with positive weights.
TENON_API Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement = false,
                             const OptionalGenerator& generator = {});

// ---- Samples of distributions, new tensors instead of PyTorch's methods in place
/// Normal numbers with the means and standard deviations at the same index; both broadcast. The
/// result has no gradient: for one, write `mean + std * randn_like(mean)`. PyTorch: `torch.normal`.
TENON_API Tensor normal(const Tensor& mean, const Tensor& std,
                        const OptionalGenerator& generator = {});
/// Normal numbers. PyTorch: `Tensor.normal_`.
TENON_API Tensor normal(const Shape& shape, double mean = 0, double std = 1,
                        DType dtype = DType::Float32, const OptionalGenerator& generator = {});
/// Uniform numbers in [low, high). PyTorch: `Tensor.uniform_`.
TENON_API Tensor uniform(const Shape& shape, double low = 0, double high = 1,
                         DType dtype = DType::Float32, const OptionalGenerator& generator = {});
/// Exponentially distributed numbers with the given rate. PyTorch: `Tensor.exponential_`.
TENON_API Tensor exponential(const Shape& shape, double rate = 1, DType dtype = DType::Float32,
                             const OptionalGenerator& generator = {});
/// The number of trials up to the first success, at least 1, for trials that succeed with
/// probability p. PyTorch: `Tensor.geometric_`.
TENON_API Tensor geometric(const Shape& shape, double p, DType dtype = DType::Float32,
                           const OptionalGenerator& generator = {});
/// Numbers of the Cauchy distribution. PyTorch: `Tensor.cauchy_`.
TENON_API Tensor cauchy(const Shape& shape, double median = 0, double scale = 1,
                        DType dtype = DType::Float32, const OptionalGenerator& generator = {});
/// e to the power of normal numbers. PyTorch: `Tensor.log_normal_`.
TENON_API Tensor log_normal(const Shape& shape, double mean = 1, double std = 2,
                            DType dtype = DType::Float32, const OptionalGenerator& generator = {});

}  // namespace tenon

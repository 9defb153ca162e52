// Modules that networks in files need beside those of nn/.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tenon/nn.h>

namespace tenon::models {

/// A function without parameters.
class FileFunction : public nn::Module {
 public:
  FileFunction(std::string text, std::function<Tensor(const Tensor&)> function)
      : text_(std::move(text)), function_(std::move(function)) {}
  Tensor forward(const Tensor& x) const override { return function_(x); }
  std::string describe() const override { return text_; }

 private:
  std::string text_;
  std::function<Tensor(const Tensor&)> function_;
};

/// x · weight + bias, with the weight [in, out] as Hugging Face's Conv1D keeps it; drawn as
/// Linear's unless `init` says otherwise, and the bias 0.
class FileProjection : public nn::Module {
 public:
  FileProjection(std::int64_t in, std::int64_t out, bool bias,
                 const std::function<Tensor(const Shape&, Generator*)>& init, Generator* generator);
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Tensor weight_, bias_;
};

/// Adds a row of weight [places, width] to each place of x [N, T, width].
class FilePositions : public nn::Module {
 public:
  FilePositions(std::int64_t places, std::int64_t width, Generator* generator);
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Tensor weight_;
};

/// A convolution over one axis or three: weight [out, in / groups, kernel…], bias [out], drawn as
/// Conv2d's.
class FileConvolution : public nn::Module {
 public:
  struct Options {
    std::vector<std::int64_t> stride, padding, dilation;
    std::int64_t groups = 1;
    bool bias = true;
    Generator* generator = nullptr;
    std::function<Tensor(const Shape&, Generator*)> weight_init{};
  };
  FileConvolution(std::int64_t in, std::int64_t out, const std::vector<std::int64_t>& kernel,
                  Options options);
  Tensor forward(const Tensor& x) const override;
  std::string describe() const override;

 private:
  Options options_;
  Tensor weight_, bias_;
};

}  // namespace tenon::models

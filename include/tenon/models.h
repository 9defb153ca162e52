// Networks by name, each with its published shape and the recipe that trains it well.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/nn.h>

namespace tenon::models {

struct Options {
  std::int64_t classes = 10;
  std::string activation{};        ///< "" : the model's own; taken by mlp
  Generator* generator = nullptr;  ///< of the initial values; nullptr: the context's
};

/// Settings that reach the model's published accuracy: the defaults of `tenon train`.
struct Recipe {
  int epochs = 5;
  std::int64_t batch = 64;
  std::string optimizer = "sgd";
  double lr = 0.05, momentum = 0.9, weight_decay = 0;
  std::string schedule = "cosine";
  double warmup = 0.25;  ///< epochs
};

struct Info {
  std::string name, about;
  Shape input;                  ///< of one sample: [1, 28, 28]
  std::int64_t parameters = 0;  ///< with 10 classes
  Recipe recipe;
};

/// Builds "lenet5", "keras_cnn", "fcn_r", "mlp" or "mlp:784-300-10". Throws ValueError for another
/// name, with near misses.
TENON_API nn::AnyModule create(const std::string& name, const Options& options = {});
/// What is known of a model before it is built; same names as create().
TENON_API Info info(const std::string& name);
TENON_API std::vector<Info> list();

}  // namespace tenon::models

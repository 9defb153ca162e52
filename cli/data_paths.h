// Paths of datasets and runs, and the network that MODEL names.
#pragma once

#include <tenon/models.h>

#include <cstdint>
#include <string>

namespace tenon::cli {

/// The folder that `--data mnist` reads and `tenon data fetch mnist` fills.
std::string mnist_folder();
/// Whether all four files are there, compressed or not.
bool holds_mnist(const std::string& folder);
/// How a training step changes the weights.
struct UpdateOptions {
  double clip_norm = 0;  ///< of gradients; 0: as they are
  std::string optimizer = "sgd";
  double lr = 1e-3, momentum = 0.9, weight_decay = 5e-4, beta2 = 0.999, eps = 1e-8;
};

/// What MODEL stands for: a name, or the network of a run folder or of a file of weights, which has
/// as many outputs as its data asked for.
struct Network {
  std::string name;
  std::int64_t batch = 0;  ///< the recipe's, or the run's
  models::Options options{};
  bool regression = false;         ///< of a run: its targets are quantities
  std::string text{};              ///< of a network in a file: `name` is where it is from
  UpdateOptions update{};          ///< the recipe's, or the run's
  std::string precision = "fp32";  ///< of a run: its own

  models::Info info() const;
  nn::AnyModule create() const;
  /// The network as a file.
  std::string toml() const;
};
Network network_of(const std::string& name_or_run);
/// Throws IoError when the folder holds no run.
void require_run(const std::string& folder);

}  // namespace tenon::cli

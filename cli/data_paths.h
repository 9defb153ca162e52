// Paths of datasets and runs, and the network that MODEL names.
#pragma once

#include <tenon/models.h>

#include <cstdint>
#include <string>

namespace tenon::cli {

/// Where `tenon data fetch mnist` puts MNIST, and whether it is there.
struct FetchedMnist {
  std::string folder{};   ///< "": there is no folder for datasets
  bool present = false;   ///< whether all four files exist, compressed or not
  std::string problem{};  ///< why the folder cannot be read; "": nothing hides its files
};
FetchedMnist fetched_mnist();
/// Optimizer options of a training step.
struct UpdateOptions {
  double clip_norm = 0;  ///< gradient clipping norm; 0: no clipping
  std::string optimizer = "sgd";
  double lr = 1e-3, momentum = 0.9, weight_decay = 5e-4, beta2 = 0.999, eps = 1e-8;
};

/// The network that MODEL names: a built-in network, a network file, or the network of a run folder
/// or weight file with the number of outputs that its data needs.
struct Network {
  std::string name;
  std::int64_t batch = 0;  ///< the recipe's, or the run's
  models::Options options{};
  std::string task{};              ///< the run's; "": the network's own, or classification
  std::string text{};              ///< text of a network file; `name` is its path
  UpdateOptions update{};          ///< the recipe's, or the run's
  std::string precision = "fp32";  ///< precision of the run

  models::Info info() const;
  nn::AnyModule create() const;
  /// The network as a TOML file.
  std::string toml() const;
};
Network network_of(const std::string& name_or_run);
/// Throws IoError if the folder contains no run.
void require_run(const std::string& folder);

}  // namespace tenon::cli

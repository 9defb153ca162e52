// A built-in network: the keys of its embedded file, with the values from its name applied.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tenon/models.h>

#include "io/text/toml.h"
#include "models/embedded_networks.h"
#include "models/network_family.h"

namespace tenon::models {

class NamedNetwork {
 public:
  /// `sizes` is what follows the colon of the name, or "". Throws ValueError for sizes that the
  /// network does not take.
  NamedNetwork(const Family& family, const std::string& name, const std::string& sizes);

  /// What models::info() returns.
  Info info() const;
  /// The network. Throws ValueError for options that it does not take.
  nn::AnyModule build(const Options& options) const;
  /// The network as a file: the lines of the embedded file, with the values of its name and of the
  /// options.
  std::string toml(const Options& options) const;

 private:
  std::string full_name() const;
  const std::string& head_in(const Options& options) const;
  bool takes(const std::string& what) const;
  void check(const Options& options) const;
  /// The keys of a network file, with the values of the options.
  io::TomlValue resolved(const Options& options) const;
  NetworkFacts facts() const;

  const Family& family_;
  const EmbeddedNetwork& file_;
  std::string name_, sizes_;
  io::TomlValue keys_;              // of a network file, as published
  std::vector<std::string> takes_;  // classes, activation, variables
  std::int64_t parameters_ = 0;     // as published
  std::string head_{};              // of the network's own, in place of the last layer
  std::optional<io::TomlValue> with_head_{};
};

}  // namespace tenon::models

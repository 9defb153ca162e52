// Networks that a program has registered.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/models.h>

namespace tenon::models {

/// A registered network with the sizes in a name.
struct OwnNetwork {
  std::shared_ptr<const RegisteredNetwork> network;
  std::string sizes;

  Info info() const;
  nn::AnyModule build(Options options) const;
};

/// The registered network of a name such as "mine" or "mine:32-16"; unset if there is none. Throws
/// ValueError for sizes that it does not take.
std::optional<OwnNetwork> own_network(const std::string& name);
/// The facts of all registered networks, in order.
std::vector<Info> own_networks();

}  // namespace tenon::models

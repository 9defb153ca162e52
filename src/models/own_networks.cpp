// The registry of networks.
#include "models/own_networks.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include <tenon/error.h>
#include <tenon/shapes_only.h>

#include "base/make_error.h"
#include "base/system/registrations.h"

namespace tenon::models {
namespace {

// Never destroyed: threads may still ask while the program ends.
struct NetworkRegistry {
  std::mutex mutex;
  std::vector<std::shared_ptr<const RegisteredNetwork>> own;
};
NetworkRegistry& network_registry() {
  static auto& registry = *new NetworkRegistry;
  return registry;
}

void check_network(const RegisteredNetwork& network) {
  const Info& info = network.info;
  if (info.name.empty() ||
      info.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    throw make_error<ValueError>("register_network: the name '", info.name,
                                 "' must be lower-case letters, digits and underscores");
  if (!network.make || info.input.rank() == 0 || info.classes < 1)
    throw make_error<ValueError>("register_network: '", info.name,
                                 "' needs a function, an input shape and a number of classes");
}

// Shapes alone: no weight is drawn.
std::int64_t parameters_of(const std::shared_ptr<const RegisteredNetwork>& network) {
  const ShapesOnly shapes;
  std::int64_t count = 0;
  for (const Tensor& parameter : OwnNetwork{network, ""}.build({}).parameters())
    count += parameter.numel();
  return count;
}

}  // namespace

Info OwnNetwork::info() const {
  Info out = network->info;
  if (!sizes.empty()) out.name += ":" + sizes;
  return out;
}

nn::AnyModule OwnNetwork::build(Options options) const {
  if (options.classes == 0) options.classes = network->info.classes;
  return network->make(options, sizes);
}

std::optional<OwnNetwork> own_network(const std::string& name) {
  const std::size_t colon = name.find(':');
  const std::string stem = name.substr(0, colon);
  NetworkRegistry& registry = network_registry();
  const std::lock_guard lock(registry.mutex);
  for (const auto& network : registry.own) {
    if (network->info.name != stem) continue;
    if (colon != std::string::npos && !network->takes_sizes)
      throw make_error<ValueError>("model '", name, "': '", stem, "' takes no sizes");
    return OwnNetwork{network, colon == std::string::npos ? "" : name.substr(colon + 1)};
  }
  return std::nullopt;
}

std::vector<Info> own_networks() {
  NetworkRegistry& registry = network_registry();
  const std::lock_guard lock(registry.mutex);
  std::vector<Info> out;
  for (const auto& network : registry.own) out.push_back(network->info);
  return out;
}

void register_network(RegisteredNetwork network) {
  check_network(network);
  const std::string name = network.info.name, what = cat("model '", name, "'");
  const std::vector<std::string> known = names();
  if (std::find(known.begin(), known.end(), name) != known.end())
    throw make_error<ValueError>("register_network: there is a ", what, owner_of(what),
                                 " already: choose another name");
  const auto kept = std::make_shared<RegisteredNetwork>(std::move(network));
  if (kept->info.parameters == 0) kept->info.parameters = parameters_of(kept);
  {
    const std::lock_guard lock(network_registry().mutex);
    network_registry().own.push_back(kept);
  }
  note_registration(what, [name] {
    const std::lock_guard lock(network_registry().mutex);
    std::erase_if(network_registry().own,
                  [&](const auto& each) { return each->info.name == name; });
  });
}

}  // namespace tenon::models

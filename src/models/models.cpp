// The public functions for networks by name, and the list of all built-in networks.
#include <tenon/models.h>

#include <algorithm>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"
#include "models/embedded_networks.h"
#include "models/named_network.h"
#include "models/network_family.h"
#include "models/own_networks.h"

namespace tenon::models {
namespace {

// In the order in which `tenon models` lists them.
constexpr Family kNetworkFamilies[] = {{"lenet5"},
                                       {"keras_cnn"},
                                       {"lenet5_1998"},
                                       {"mlp", set_mlp_sizes, nullptr, true},
                                       {"fcn"},
                                       {"alexnet"},
                                       {"alexnet_2012"},
                                       {"alexnet_s"},
                                       {"alexnet_r"},
                                       {"vgg16"},
                                       {"resnet18"},
                                       {"resnet50"},
                                       {"resnet20"},
                                       {"inception_resnet_v2"},
                                       {"lstm"},
                                       {"keras_rnn"},
                                       {"gpt2", set_gpt2_sizes, build_gpt2},
                                       {"bert", set_bert_sizes, build_bert},
                                       {"transformer", set_transformer_sizes, build_transformer}};

struct Named {
  std::string name;
  const Family* family;
};

const std::vector<Named>& named_networks() {
  static const std::vector<Named> all = [] {
    std::vector<Named> out;
    for (const Family& family : kNetworkFamilies)
      for (std::string& name : networks_of_file(family.file))
        out.push_back({std::move(name), &family});
    return out;
  }();
  return all;
}

NamedNetwork choose(const std::string& name) {
  const std::size_t colon = name.find(':');
  const std::string stem = name.substr(0, colon);
  std::vector<std::string> names;
  for (const Named& network : named_networks()) {
    names.push_back(network.name);
    if (stem != network.name) continue;
    if (colon != std::string::npos && colon + 1 == name.size())
      throw ValueError(
          cat("model '", name, "': sizes are missing after the colon, as in mlp:784-300-10"));
    return {*network.family, stem, colon == std::string::npos ? "" : name.substr(colon + 1)};
  }
  for (Info& own : own_networks()) names.push_back(std::move(own.name));
  const std::string near = nearest(stem, names.data(), static_cast<int>(names.size()));
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
  throw ValueError(cat("there is no model '", name, "'",
                       near.empty() ? "" : cat("; did you mean '", near, "'?"), " (", all, ")"));
}

}  // namespace

nn::AnyModule create(const std::string& name, const Options& options) {
  if (const auto own = own_network(name)) return own->build(options);
  return is_network_file(name) ? create(read_network(name), options) : choose(name).build(options);
}

Info info(const std::string& name) {
  if (const auto own = own_network(name)) return own->info();
  return is_network_file(name) ? info(read_network(name)) : choose(name).info();
}

std::string toml(const std::string& name, const Options& options) {
  if (own_network(name))
    throw NotSupported(cat("model '", name, "' is built by a program and has no TOML file"));
  return is_network_file(name) ? read_network(name).text : choose(name).toml(options);
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const Named& network : named_networks()) out.push_back(network.name);
  for (Info& own : own_networks()) out.push_back(std::move(own.name));
  return out;
}

std::string Info::task() const {
  if (pairs) return "translation";
  if (finds_spans()) return "spans";
  if (masked) return "masked_language";
  return tokens ? "language" : "";
}

std::vector<Info> list() {
  std::vector<Info> out;
  for (const Named& network : named_networks())
    out.push_back(NamedNetwork(*network.family, network.name, "").info());
  for (Info& own : own_networks()) out.push_back(std::move(own));
  return out;
}

}  // namespace tenon::models

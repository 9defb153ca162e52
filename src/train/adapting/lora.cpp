// Chooses the weights that get adapters, substitutes the adapted weights in the graph, and merges
// them into plain weights.
#include "train/adapting/lora.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/transformer.h>

#include "base/str.h"
#include "graph/node.h"
#include "graph/order.h"
#include "graph/tracing/body.h"
#include "io/text/numbers.h"
#include "models/conv1d.h"

namespace tenon::train {
namespace {

constexpr char kOwnName[] = "lora";
constexpr char kPrefix[] = "lora.";
constexpr double kMostRank = 65536;

[[noreturn]] void refuse_lora(const std::string& text, const std::string& what) {
  throw ValueError(cat("setting 'lora' is '", text, "': ", what,
                       ", as in 'rank=8,alpha=16,targets=c_attn+c_proj,learn=classifier.6'"));
}

std::vector<std::string> split_at(const std::string& text, char mark) {
  std::vector<std::string> out(1);
  for (const char c : text)
    if (c == mark)
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

// A weight that may have an adapter.
struct Place {
  std::string layer, weight;  // "classifier.0", "classifier.0.weight"
  Tensor tensor;
  bool in_by_out = false;  // stored as in Hugging Face's Conv1D
};

void collect_places(const nn::ModuleBase& net, const std::string& path,
                    std::unordered_set<const Node*>& taken, std::vector<Place>& places) {
  for (const auto& [name, part] : net.children()) {
    const std::string layer = path.empty() ? name : cat(path, ".", name);
    const bool in_by_out = part.as<models::Conv1D>() != nullptr;
    if (in_by_out || part.as<nn::Linear>() != nullptr ||
        part.as<nn::MultiheadAttention>() != nullptr)
      for (const nn::NamedTensor& p : part.named_parameters())
        if (p.name.find('.') == std::string::npos && p.tensor.rank() == 2 &&
            taken.insert(p.tensor.node()).second)
          places.push_back({layer, cat(layer, ".", p.name), p.tensor, in_by_out});
    collect_places(part, layer, taken, places);
  }
}

void collect_embeddings(const nn::ModuleBase& net, std::unordered_set<const Node*>& taken) {
  for (const auto& [name, part] : net.children()) {
    if (const auto* embedding = part.as<nn::Embedding>()) taken.insert(embedding->weight().node());
    collect_embeddings(part, taken);
  }
}

std::vector<Place> places_of_adapters(const nn::AnyModule& net) {
  std::unordered_set<const Node*> taken;
  collect_embeddings(net, taken);
  std::vector<Place> places;
  collect_places(net, "", taken, places);
  return places;
}

// Whether the path contains the components of `target` in sequence, as "h.0.c_attn" contains
// c_attn.
bool names_part(const std::string& target, const std::string& path) {
  return cat(".", path, ".").find(cat(".", target, ".")) != std::string::npos;
}

bool is_within(const std::string& path, const std::string& part) {
  return path == part || path.starts_with(part + ".");
}

[[noreturn]] void refuse_target(const std::string& target, const std::vector<Place>& places) {
  std::vector<std::string> names;
  for (const Place& place : places) {
    names.push_back(place.layer);
    names.push_back(place.layer.substr(place.layer.rfind('.') + 1));
  }
  const std::string near = nearest(target, names.data(), static_cast<int>(names.size()));
  std::string some;
  constexpr std::size_t kShown = 8;
  for (std::size_t k = 0; k < std::min(places.size(), kShown); ++k)
    some += cat(k == 0 ? "" : ", ", places[k].layer);
  if (places.size() > kShown) some += ", …";
  throw ValueError(cat("lora: no layer at '", target, "' can have an adapter",
                       near.empty() ? "." : cat("; did you mean '", near, "'?"),
                       some.empty() ? " Linear layers and attention projections can."
                                    : cat(" Layers that can: ", some)));
}

// The weights that are to have adapters.
std::vector<Place> chosen_places(const nn::AnyModule& net, const LoraOptions& options) {
  std::vector<Place> places = places_of_adapters(net);
  for (const std::string& target : options.targets)
    if (std::none_of(places.begin(), places.end(),
                     [&](const Place& p) { return names_part(target, p.weight); }))
      refuse_target(target, places);
  std::erase_if(places, [&](const Place& p) {
    const auto& targets = options.targets;
    const bool wanted =
        targets.empty() || std::any_of(targets.begin(), targets.end(), [&](const auto& target) {
          return names_part(target, p.weight);
        });
    return !wanted || std::any_of(options.learn.begin(), options.learn.end(),
                                  [&](const auto& part) { return is_within(p.weight, part); });
  });
  if (places.empty())
    throw ValueError(cat("lora: ", net.describe(),
                         " has no layer that can have an adapter: only linear layers and attention "
                         "projections that are not in 'learn' can"));
  return places;
}

struct Adapter {
  Place place;
  Tensor a, b;  // [rank, in], [out, rank]
};

// A tree of modules that has the parameters A and B of each adapter under the name of its weight:
// "classifier.0.weight.A".
class AdapterTree : public nn::ModuleBase {
 public:
  using Item = std::pair<std::string, Adapter*>;  // the name relative to this module
  AdapterTree(const std::vector<Item>& items, std::int64_t rank) {
    std::vector<std::pair<std::string, std::vector<Item>>> parts;
    for (const auto& [name, adapter] : items) {
      if (name.empty()) {
        add(*adapter, rank);
        continue;
      }
      const std::size_t dot = std::min(name.find('.'), name.size());
      const std::string first = name.substr(0, dot);
      if (parts.empty() || parts.back().first != first)
        parts.emplace_back(first, std::vector<Item>());
      parts.back().second.emplace_back(dot < name.size() ? name.substr(dot + 1) : "", adapter);
    }
    for (const auto& [name, within] : parts) child(name, AdapterTree(within, rank));
  }

 private:
  void add(Adapter& adapter, std::int64_t rank) {
    const Shape& w = adapter.place.tensor.shape();
    const std::int64_t in = w[adapter.place.in_by_out ? 0 : 1],
                       out = w[adapter.place.in_by_out ? 1 : 0];
    const DType dtype = adapter.place.tensor.dtype();
    adapter.a = parameter("A", cast(nn::init::kaiming_uniform({rank, in}, std::sqrt(5.0)), dtype));
    adapter.b = parameter("B", zeros({out, rank}, dtype));
  }
};

// The products with adapted weights in a graph: x · W^T of linear layers and x · W of Conv1D.
class ProductsOf {
 public:
  ProductsOf(const std::vector<Adapter>& adapters, const std::vector<Tensor>& outputs) {
    std::unordered_map<const Node*, const Adapter*> right;  // right operands of such products
    for (const Adapter& adapter : adapters) right.emplace(adapter.place.tensor.node(), &adapter);
    for (const Node* node : topological_order(outputs))
      for (int k = 0; k < (node->realised() ? 0 : node->input_count); ++k) {
        const auto found = right.find(node->input(k));
        if (found == right.end()) continue;
        const Adapter* adapter = found->second;
        const bool is_weight = found->first == adapter->place.tensor.node();
        if (node->op == Op::Permute && is_weight && !adapter->place.in_by_out)
          right.emplace(node, adapter);
        else if (node->op == Op::Matmul && k == 1 && is_weight == adapter->place.in_by_out)
          products_.emplace(node, adapter);
        else
          others_.insert(adapter);
      }
  }
  /// Whether nothing else reads the weight.
  bool all(const Adapter& adapter) const { return !others_.contains(&adapter); }
  /// The adapter whose weight the node multiplies by; null if the node is not such a product, or
  /// not the only use of the weight.
  const Adapter* of(const Node& node) const {
    const auto found = products_.find(&node);
    return found != products_.end() && all(*found->second) ? found->second : nullptr;
  }

 private:
  std::unordered_map<const Node*, const Adapter*> products_;
  std::unordered_set<const Adapter*> others_;
};

class AdaptedNet : public nn::Module {
 public:
  AdaptedNet(const nn::AnyModule& net, const LoraOptions& options)
      : net_(net), scale_(options.alpha / static_cast<double>(options.rank)) {
    for (Place& place : chosen_places(net, options))
      adapters_.push_back({std::move(place), {}, {}});
    net_.freeze();
    for (const std::string& part : options.learn)
      net_.unfreeze(part);  // throws for an unknown name
    std::vector<AdapterTree::Item> items;
    for (Adapter& adapter : adapters_) items.emplace_back(adapter.place.weight, &adapter);
    for (const auto& [name, part] : net.children()) child(name, part);
    child(kOwnName, AdapterTree(items, options.rank));
    if (named_parameters().size() != net.named_parameters().size() + 2 * adapters_.size())
      throw NotSupported(
          cat("lora: ", net.describe(),
              " has parameters outside its layers, whose names an adapted network cannot keep"));
  }

  Tensor forward(const Tensor& x) const override {
    const std::vector<Tensor> plain{net_(x)};
    const ProductsOf products(adapters_, plain);
    Substitution instead;
    for (const Adapter& adapter : adapters_)
      if (!products.all(adapter)) instead.emplace(adapter.place.tensor.node(), sum_of(adapter));
    return substitute(plain, instead, [&](const Node& node, const std::vector<Tensor>& inputs) {
      const Adapter* adapter = products.of(node);
      return adapter == nullptr ? Tensor() : beside(*adapter, node, inputs);
    })[0];
  }
  std::string describe() const override { return net_.describe(); }

  StateDict merged() const {
    StateDict out = net_.state_dict();
    for (auto& entry : out)
      for (const Adapter& adapter : adapters_)
        if (entry.second.node() == adapter.place.tensor.node())
          entry.second = sum_of(adapter).compute();
    return out;
  }
  StateDict for_peft() const {
    StateDict out;
    for (const Adapter& adapter : adapters_) {
      const std::string& weight = adapter.place.weight;
      const std::string layer = cat("base_model.model.", adapter.place.layer),
                        own = weight.ends_with(".weight") ? std::string()
                                                          : weight.substr(weight.rfind('.'));
      out.emplace(cat(layer, own, ".lora_A.weight"), adapter.a);
      out.emplace(cat(layer, own, ".lora_B.weight"), adapter.b);
    }
    return out;
  }

 private:
  Tensor sum_of(const Adapter& adapter) const {
    const Tensor product = matmul(adapter.b, adapter.a) * scale_;
    return adapter.place.tensor + (adapter.place.in_by_out ? transpose(product, 0, 1) : product);
  }

  // x W^T + s (x A^T) B^T: no gradient of the size of W is computed.
  Tensor beside(const Adapter& adapter, const Node& node, const std::vector<Tensor>& inputs) const {
    const PrecisionScope precision(node.attrs.as<ContractionAttrs>().precision);
    const Tensor product = make_node(node.op, node.dtype, node.shape, node.attrs, inputs);
    const Tensor half = matmul(inputs[0], transpose(adapter.a, 0, 1)) * scale_;
    return product + cast(matmul(half, transpose(adapter.b, 0, 1)), product.dtype());
  }

  nn::AnyModule net_;
  double scale_;
  std::vector<Adapter> adapters_;
};

const AdaptedNet& as_adapted(const nn::AnyModule& net) {
  if (const auto* adapted = net.as<AdaptedNet>()) return *adapted;
  throw InternalError("lora: the network has no adapters");
}

// "1,234,567".
std::string with_commas(std::int64_t count) {
  std::string out = std::to_string(count);
  for (std::ptrdiff_t at = std::ssize(out) - 3; at > 0; at -= 3)
    out.insert(static_cast<std::size_t>(at), ",");
  return out;
}

}  // namespace

LoraOptions parse_lora(const std::string& text) {
  LoraOptions out;
  std::optional<double> alpha;
  for (const std::string& item : split_at(text, ',')) {
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string key = item.substr(0, equals),
                      value = equals < item.size() ? item.substr(equals + 1) : "";
    double number = 0;
    const bool is_number = io::parse_number(std::string_view(value), number);
    if (key == "rank") {
      if (!is_number || !(number >= 1 && number <= kMostRank) || number != std::floor(number))
        refuse_lora(text, cat("rank must be a whole number from 1 to ", kMostRank));
      out.rank = static_cast<std::int64_t>(number);
    } else if (key == "alpha") {
      if (!is_number || !(number > 0) || !std::isfinite(number))
        refuse_lora(text, "alpha must be a number above 0");
      alpha = number;
    } else if (key == "targets" || key == "learn") {
      std::vector<std::string> names = split_at(value, '+');
      if (std::find(names.begin(), names.end(), "") != names.end())
        refuse_lora(text, cat(key, " must be names with + between"));
      (key == "targets" ? out.targets : out.learn) = std::move(names);
    } else {
      const std::string known[] = {"rank", "alpha", "targets", "learn"};
      const std::string near = nearest(key, known, 4);
      refuse_lora(text, cat("'", key, "' is not one of rank, alpha, targets and learn",
                            near.empty() ? "" : cat(" (did you mean '", near, "'?)")));
    }
  }
  out.alpha = alpha.value_or(static_cast<double>(out.rank));
  return out;
}

nn::AnyModule with_adapters(const nn::AnyModule& net, const LoraOptions& options) {
  return AdaptedNet(net, options);
}

StateDict merged_state(const nn::AnyModule& adapted) { return as_adapted(adapted).merged(); }

StateDict adapter_state(const nn::AnyModule& adapted) { return as_adapted(adapted).for_peft(); }

bool has_adapters(const StateDict& state) {
  const auto first = state.lower_bound(kPrefix);
  return first != state.end() && first->first.starts_with(kPrefix);
}

std::string trainable_summary(const nn::AnyModule& net) {
  std::int64_t adapters = 0, others = 0;
  for (const nn::NamedTensor& p : net.named_trainable_parameters())
    (p.name.starts_with(kPrefix) ? adapters : others) += p.tensor.numel();
  const std::int64_t stay = net.parameter_count() - adapters - others;
  return cat("learning: ",
             adapters == 0 ? cat(with_commas(others), " parameters")
                           : cat(with_commas(adapters), " parameters of adapters and ",
                                 with_commas(others), " others"),
             "; ", with_commas(stay), " are frozen");
}

}  // namespace tenon::train

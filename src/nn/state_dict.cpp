// Saving and loading by name. Loading checks everything before it writes the first value.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include <tenon/error.h>
#include <tenon/nn.h>
#include <tenon/shapes_only.h>

#include "base/make_error.h"
#include "base/str.h"
#include "graph/node.h"
#include "graph/tracing/traced_state.h"
#include "nn/walk.h"

namespace tenon::nn {
namespace {

// Text such as "'a', 'b', 'c' and 4 more".
std::string list(const std::vector<std::string>& items) {
  constexpr std::size_t kShown = 5;
  std::string out;
  for (std::size_t k = 0; k < std::min(items.size(), kShown); ++k)
    out += (k == 0 ? "" : ", ") + items[k];
  if (items.size() > kShown) out += cat(" and ", items.size() - kShown, " more");
  return out;
}

std::string with_near_miss(const std::string& name, const std::vector<std::string>& candidates) {
  const std::string near = nearest(name, candidates.data(), static_cast<int>(candidates.size()));
  return near.empty() ? cat("'", name, "'") : cat("'", name, "' (near '", near, "')");
}

struct Differences {
  std::vector<std::string> missing, unexpected, misshapen;
};

Differences compare(const StateDict& own, const StateDict& given) {
  Differences d;
  std::vector<std::string> only_own, only_given;
  for (const auto& [name, tensor] : own) {
    const auto it = given.find(name);
    if (it == given.end())
      only_own.push_back(name);
    else if (!it->second.defined())
      throw make_error<ValueError>("load_state_dict: '", name,
                                   "' has no value: it was never assigned");
    else if (it->second.shape() != tensor.shape())
      d.misshapen.push_back(
          cat("'", name, "' is ", it->second.shape(), " where the model has ", tensor.shape()));
  }
  for (const auto& [name, tensor] : given)
    if (own.count(name) == 0) only_given.push_back(name);
  for (const std::string& name : only_own) d.missing.push_back(with_near_miss(name, only_given));
  for (const std::string& name : only_given) d.unexpected.push_back(with_near_miss(name, only_own));
  return d;
}

// Renames tied tensors to the names that state_dict() uses.
StateDict by_first_names(const ModuleBase& module, StateDict given) {
  std::unordered_map<const Node*, std::string> first;
  Walk::names(module, [&](const std::string& path, const auto& entry) {
    const auto [it, is_first] = first.emplace(entry.tensor.node(), path);
    if (is_first) return;
    if (auto other = given.extract(path); !other.empty()) {
      other.key() = it->second;
      given.insert(std::move(other));  // no effect if the first name is present, too
    }
  });
  return given;
}

}  // namespace

void ModuleBase::to(DType dtype) {
  if (!is_floating(dtype))
    throw make_error<ValueError>("to: ", dtype,
                                 " is given for a module: use a floating-point dtype");
  if (is_tracing())
    throw ValueError(
        "to: a module is converted inside a function that is being compiled: convert it before");
  std::vector<std::pair<Tensor, Tensor>> converted;
  Walk::entries(*this, [&](const std::string&, ModuleState::Entry& e) {
    if (is_floating(e.tensor.dtype()) && e.tensor.dtype() != dtype)
      converted.emplace_back(e.tensor, cast(e.tensor, dtype));
  });
  if (!ShapesOnly::is_on())
    for (const auto& [variable, value] : converted) value.compute();
  for (const auto& [variable, value] : converted) convert_variable(variable, value);
  note_state_changed();
}

StateDict ModuleBase::state_dict() const {
  StateDict out;
  Walk::entries(
      *this, [&](const std::string& path, ModuleState::Entry& e) { out.emplace(path, e.tensor); });
  return out;
}

int ModuleBase::load_state_dict(const StateDict& given, bool strict) {
  const StateDict own = state_dict();
  const StateDict state = by_first_names(*this, given);
  const Differences d = compare(own, state);
  if (!d.misshapen.empty())
    throw make_error<ShapeError>("load_state_dict: ", list(d.misshapen),
                                 ": the weights belong to another network");
  if (strict && !(d.missing.empty() && d.unexpected.empty()))
    throw make_error<ValueError>(
        "load_state_dict: ", d.missing.empty() ? "" : cat("missing ", list(d.missing)),
        d.missing.empty() || d.unexpected.empty() ? "" : "; ",
        d.unexpected.empty() ? "" : cat("not in the model: ", list(d.unexpected)),
        "; load with strict = false to leave these alone");
  int loaded = 0;
  for (const auto& [name, tensor] : own) {
    const auto it = state.find(name);
    if (it == state.end()) continue;
    const Tensor& value = it->second;
    set_value(tensor, value.dtype() == tensor.dtype() ? value : cast(value, tensor.dtype()));
    ++loaded;
  }
  return loaded;
}

}  // namespace tenon::nn

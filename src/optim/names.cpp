// Optimizers by name.
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <tenon/error.h>
#include <tenon/optimizers.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/registrations.h"

namespace tenon::optim {
namespace {

// Calls take(member, option, name) for each option that the struct has, and refuse(option, name)
// for the others.
template <class Options, class Given, class Take, class Refuse>
void for_each_option(Options& options, Given& given, const Take& take, const Refuse& refuse) {
#define TENON_OPTION(name)                  \
  if constexpr (requires { options.name; }) \
    take(options.name, given.name, #name);  \
  else                                      \
    refuse(given.name.has_value(), #name)
  TENON_OPTION(lr);
  TENON_OPTION(momentum);
  TENON_OPTION(weight_decay);
  TENON_OPTION(beta1);
  TENON_OPTION(beta2);
  TENON_OPTION(alpha);
  TENON_OPTION(dampening);
  TENON_OPTION(nesterov);
  TENON_OPTION(centered);
  TENON_OPTION(amsgrad);
  TENON_OPTION(maximize);
  if constexpr (requires { options.mu; })
    take(options.mu, given.eps, "eps");
  else
    TENON_OPTION(eps);
#undef TENON_OPTION
}

// Ignoring an option that the optimizer does not have would mislead.
[[noreturn]] void refuse(const char* optimizer, const char* option) {
  throw make_error<ValueError>(optimizer, " has no option '", option, "'");
}

template <class O, class Options>
std::unique_ptr<Optimizer> make(const char* name, Parameters&& parameters,
                                const OptimizerOptions& given) {
  Options options;
  for_each_option(
      options, given,
      [](auto& member, const auto& value, const char*) {
        if (value) member = *value;
      },
      [name](bool is_given, const char* option) {
        if (is_given) refuse(name, option);
      });
  return std::make_unique<O>(std::move(parameters), options);
}

template <class Options>
OptimizerOptions defaults_of() {
  Options options;
  OptimizerOptions out;
  for_each_option(
      options, out, [](auto& member, auto& value, const char*) { value = member; },
      [](bool, const char*) {});
  return out;
}

struct Row {
  const char* name;
  std::unique_ptr<Optimizer> (*make)(const char* name, Parameters&&, const OptimizerOptions&);
  OptimizerOptions (*defaults)();
};

template <class O, class Options>
constexpr Row row(const char* name) {
  return {name, make<O, Options>, defaults_of<Options>};
}

constexpr Row kOptimizers[] = {
    row<Sgd, SgdOptions>("sgd"),
    row<Adam, AdamOptions>("adam"),
    row<AdamW, AdamWOptions>("adamw"),
    row<RmsProp, RmsPropOptions>("rmsprop"),
    row<Levenberg, LevenbergOptions>("levenberg"),
    row<Adagrad, AdagradOptions>("adagrad"),
    row<SparseAdam, SparseAdamOptions>("sparse_adam"),
    row<Adadelta, AdadeltaOptions>("adadelta"),
    row<Adamax, AdamaxOptions>("adamax"),
    row<NAdam, NAdamOptions>("nadam"),
    row<RAdam, RAdamOptions>("radam"),
    row<Rprop, RpropOptions>("rprop"),
    row<Asgd, AsgdOptions>("asgd"),
    row<Lion, LionOptions>("lion"),
    row<Muon, MuonOptions>("muon"),
    row<Lamb, LambOptions>("lamb"),
    row<Adafactor, AdafactorOptions>("adafactor"),
};

const Row* find_row(const std::string& name) {
  for (const Row& row : kOptimizers)
    if (name == row.name) return &row;
  return nullptr;
}

// Optimizers that a program has registered. Never destroyed: threads may still ask while the
// program ends.
struct OwnOptimizer {
  OptimizerOptions has;
  OptimizerMaker make;
};
struct OptimizerRegistry {
  std::mutex mutex;
  std::map<std::string, OwnOptimizer> own;
};
OptimizerRegistry& optimizer_registry() {
  static auto& registry = *new OptimizerRegistry;
  return registry;
}
std::optional<OwnOptimizer> find_own(const std::string& name) {
  const std::lock_guard lock(optimizer_registry().mutex);
  const auto found = optimizer_registry().own.find(name);
  return found == optimizer_registry().own.end() ? std::nullopt : std::optional(found->second);
}

void refuse_unknown_options(const std::string& name, OptimizerOptions has,
                            const OptimizerOptions& given) {
  for_each_option(
      has, given,
      [&](const auto& member, const auto& value, const char* option) {
        if (value && !member) refuse(name.c_str(), option);
      },
      [](bool, const char*) {});
}

const Row& row_of(const std::string& name) {
  if (const Row* row = find_row(name)) return *row;
  const std::vector<std::string> known = names();
  const std::string near = nearest(name, known.data(), static_cast<int>(known.size()));
  std::string list;
  for (const std::string& each : known) list += cat(list.empty() ? "" : ", ", each);
  throw make_error<ValueError>("'", name, "' is not an optimizer",
                               near.empty() ? "" : cat("; did you mean '", near, "'?"), " (", list,
                               ")");
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const Row& row : kOptimizers) out.emplace_back(row.name);
  const std::lock_guard lock(optimizer_registry().mutex);
  for (const auto& [name, own] : optimizer_registry().own) out.push_back(name);
  return out;
}

std::unique_ptr<Optimizer> create(const std::string& name, Parameters parameters,
                                  const OptimizerOptions& options) {
  if (const auto own = find_own(name)) {
    refuse_unknown_options(name, own->has, options);
    auto made = own->make(std::move(parameters), options);
    if (made == nullptr)
      throw make_error<ValueError>("the registered optimizer '", name, "' made no optimizer");
    return made;
  }
  const Row& row = row_of(name);
  return row.make(row.name, std::move(parameters), options);
}

OptimizerOptions defaults(const std::string& name) {
  if (const auto own = find_own(name)) return own->has;
  return row_of(name).defaults();
}

void register_optimizer(const std::string& name, const OptimizerOptions& has, OptimizerMaker make) {
  const std::string what = cat("optimizer '", name, "'");
  if (name.empty() ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    throw make_error<ValueError>("register_optimizer: the name '", name,
                                 "' must be lower-case letters, digits and underscores");
  if (!make || !has.lr)
    throw make_error<ValueError>("register_optimizer: ", what,
                                 " needs a function and a default learning rate, lr");
  {
    const std::lock_guard lock(optimizer_registry().mutex);
    if (find_row(name) != nullptr ||
        !optimizer_registry().own.emplace(name, OwnOptimizer{has, std::move(make)}).second)
      throw make_error<ValueError>("register_optimizer: there is an ", what, owner_of(what),
                                   " already: choose another name");
  }
  note_registration(what, [name] {
    const std::lock_guard lock(optimizer_registry().mutex);
    optimizer_registry().own.erase(name);
  });
}

}  // namespace tenon::optim

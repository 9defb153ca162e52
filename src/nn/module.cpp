// Modules: registration, calls in a scope, modes, and the walk over parameters that everything else
// is made of.
//
// A path is the names from the root joined with dots. The nodes of parameters carry their path as a
// label, so that plans and errors can quote it; adding a child renews the labels below it.
#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_set>

#include <tenon/error.h>
#include <tenon/nn.h>

#include "base/str.h"
#include "graph/node.h"
#include "nn/state.h"
#include "nn/walk.h"

namespace tenon::nn {
namespace {

thread_local std::string t_path;  // of the module being called
thread_local CallObserver* t_observer = nullptr;

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : name.empty() ? prefix : prefix + "." + name;
}

// Appends a name to the thread's path while a module is being called.
class PathGuard {
 public:
  explicit PathGuard(const std::string& name) : length_(t_path.size()) {
    t_path = join(t_path, name);
  }
  ~PathGuard() { t_path.resize(length_); }
  PathGuard(const PathGuard&) = delete;
  PathGuard& operator=(const PathGuard&) = delete;

 private:
  std::size_t length_;
};

// What the call of a module on this thread renews; the calls that it makes have lists of their own.
class Updates {
 public:
  Updates() : outer_(std::exchange(current_, this)) {}
  ~Updates() { current_ = outer_; }
  Updates(const Updates&) = delete;
  Updates& operator=(const Updates&) = delete;

  static Updates* current() { return current_; }
  void add(const Tensor& buffer, const Tensor& value) {
    for (const Tensor& made : made_)
      if (made.node()->input(0) == buffer.node())
        throw ValueError(cat(where("update"), ": ", label_text(buffer.node()->label),
                             " is renewed twice in one call"));
    made_.push_back(assign(buffer, value));
  }
  const std::vector<Tensor>& made() const { return made_; }

 private:
  static thread_local Updates* current_;
  std::vector<Tensor> made_;
  Updates* outer_;
};
thread_local Updates* Updates::current_ = nullptr;

// Does not ask the module to describe itself: its constructor is still at work.
void check_name(const std::string& name) {
  if (name.empty() || name.find('.') != std::string::npos)
    throw ValueError(cat("module: '", name,
                         "' cannot name a part of a module: it must not be empty or hold a dot"));
}

}  // namespace

// Visits the states of a module and of all below, parents first, each state once.
template <class F>
void Walk::states(const Module& root, F&& visit) {
  std::unordered_set<const void*> seen;
  auto go = [&](auto&& self, const Module& module, const std::string& path) -> void {
    if (!seen.insert(module.state_.get()).second) return;
    visit(*module.state_, path);
    for (const auto& [name, child] : module.state_->children) self(self, *child, join(path, name));
  };
  go(go, root, "");
}

Module::Module() : state_(std::make_shared<State>()) {}
Module::~Module() = default;

std::string Module::describe() const { return "Module"; }

Tensor Module::operator()(const Tensor& x) const {
  const std::string& name = state_->name;
  std::optional<Scope> scope;
  if (!name.empty()) scope.emplace(name);
  PathGuard path(name);
  std::optional<PrecisionScope> precision;
  if (state_->precision) precision.emplace(*state_->precision);
  Updates updates;
  Tensor y = forward(x);
  y = with_updates(y, updates.made());
  for (CallObserver* o = t_observer; o != nullptr; o = o->previous_)
    o->function_(t_path, *this, x, y);
  return y;
}

CallObserver::CallObserver(Callback f) : function_(std::move(f)), previous_(t_observer) {
  if (!function_) throw ValueError("CallObserver: it was given an empty function");
  t_observer = this;
}
CallObserver::~CallObserver() { t_observer = previous_; }

Tensor Module::parameter(const std::string& name, const Tensor& init) {
  check_name(name);
  for (const auto& entry : state_->entries)
    if (entry.name == name)
      throw ValueError(cat("module: there are two parameters named '", name, "'"));
  Tensor t = variable(init, name);
  state_->entries.push_back({name, t, false, false});
  return t;
}

void Module::update(const Tensor& buffer, const Tensor& value) const {
  if (!is_training()) return;
  if (Updates::current() == nullptr)
    throw ValueError(cat(where("update"),
                         ": no module is being called: call the module itself, "
                         "not its forward()"));
  Updates::current()->add(buffer, value);
}

Tensor Module::buffer(const std::string& name, const Tensor& init) {
  Tensor t = parameter(name, init);
  state_->entries.back().buffer = true;
  return t;
}

void Module::add_child(const std::string& name, std::shared_ptr<const Module> module) {
  check_name(name);
  for (const auto& [other, unused] : state_->children)
    if (other == name) throw ValueError(cat("module: there are two children named '", name, "'"));
  Walk::states(*module, [&](const State& below, const std::string&) {
    if (&below == state_.get())
      throw ValueError(cat("module: '", name, "' would make a module a part of itself"));
  });
  module->state_->name = name;
  state_->children.emplace_back(name, std::move(module));
  for (const NamedTensor& p : named_parameters()) p.tensor.node()->label = intern_label(p.name);
  for (const NamedTensor& b : named_buffers()) b.tensor.node()->label = intern_label(b.name);
}

AnyModule::AnyModule(std::shared_ptr<const Module> module) : module_(std::move(module)) {
  if (module_ == nullptr) throw ValueError("AnyModule: it was given a null pointer, no module");
  state_ = module_->state_;
}

void Walk::entries(const Module& root, const Visitor& visit) {
  std::unordered_set<const Node*> seen;
  states(root, [&](Module::State& state, const std::string& path) {
    for (Module::State::Entry& entry : state.entries)
      if (seen.insert(entry.tensor.node()).second) visit(join(path, entry.name), entry);
  });
}

std::vector<NamedTensor> Module::named_parameters() const {
  std::vector<NamedTensor> out;
  Walk::entries(*this, [&](const std::string& path, State::Entry& e) {
    if (!e.buffer) out.push_back({path, e.tensor});
  });
  return out;
}

std::vector<NamedTensor> Module::named_buffers() const {
  std::vector<NamedTensor> out;
  Walk::entries(*this, [&](const std::string& path, State::Entry& e) {
    if (e.buffer) out.push_back({path, e.tensor});
  });
  return out;
}

std::vector<NamedTensor> Module::named_trainable_parameters() const {
  std::vector<NamedTensor> out;
  Walk::entries(*this, [&](const std::string& path, State::Entry& e) {
    if (!e.buffer && !e.frozen) out.push_back({path, e.tensor});
  });
  return out;
}

namespace {
std::vector<Tensor> tensors(const std::vector<NamedTensor>& named) {
  std::vector<Tensor> out;
  out.reserve(named.size());
  for (const NamedTensor& n : named) out.push_back(n.tensor);
  return out;
}
}  // namespace

std::vector<Tensor> Module::parameters() const { return tensors(named_parameters()); }
std::vector<Tensor> Module::trainable_parameters() const {
  return tensors(named_trainable_parameters());
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const NamedTensor& p : named_parameters()) count += p.tensor.numel();
  return count;
}

std::vector<std::pair<std::string, AnyModule>> Module::children() const {
  std::vector<std::pair<std::string, AnyModule>> out;
  for (const auto& [name, child] : state_->children) out.emplace_back(name, AnyModule(child));
  return out;
}

void Module::train(bool on) const {
  Walk::states(*this, [&](State& state, const std::string&) { state.training = on; });
}

bool Module::is_training() const { return state_->training; }

void Module::set_frozen(const std::string& path, bool frozen) const {
  int found = 0;
  std::vector<std::string> names;
  Walk::entries(*this, [&](const std::string& name, State::Entry& entry) {
    if (entry.buffer) return;
    names.push_back(name);
    if (!path.empty() && name != path && name.rfind(path + ".", 0) != 0) return;
    entry.frozen = frozen;
    ++found;
  });
  if (found != 0 || path.empty()) return;
  const std::string near = nearest(path, names.data(), static_cast<int>(names.size()));
  throw ValueError(cat(frozen ? "freeze" : "unfreeze", ": no parameter lies at '", path, "'",
                       near.empty() ? "" : cat("; did you mean '", near, "'?")));
}

void Module::set_precision(Precision precision, const std::string& path) const {
  bool found = false;
  std::vector<std::string> names;
  Walk::states(*this, [&](State& state, const std::string& name) {
    if (!name.empty()) names.push_back(name);
    if (name != path) return;
    state.precision = precision;
    found = true;
  });
  if (found) return;
  const std::string near = nearest(path, names.data(), static_cast<int>(names.size()));
  throw ValueError(cat("set_precision: there is no module '", path, "'",
                       near.empty() ? "" : cat("; did you mean '", near, "'?")));
}

bool Module::has_precision(Precision precision) const {
  bool found = false;
  Walk::states(*this,
               [&](State& state, const std::string&) { found |= state.precision == precision; });
  return found;
}

std::vector<bool> Walk::modes(const Module& root) {
  std::vector<bool> out;
  states(root, [&](Module::State& state, const std::string&) { out.push_back(state.training); });
  return out;
}

void Walk::set_modes(const Module& root, const std::vector<bool>& modes) {
  std::size_t k = 0;
  states(root, [&](Module::State& state, const std::string&) { state.training = modes[k++]; });
}

bool Walk::has_children(const Module& module) { return !module.state_->children.empty(); }

std::int64_t Walk::own_parameters(const Module& module) {
  std::int64_t count = 0;
  for (const auto& entry : module.state_->entries)
    if (!entry.buffer) count += entry.tensor.numel();
  return count;
}

}  // namespace tenon::nn

// Modules: registration, scoped calls, modes, and the traversal of parameters that all other
// functions use.
//
// A path is the names from the root, joined with dots. Parameter nodes carry their path as a label
// for plans and errors; adding a child updates the labels below it.
#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <typeinfo>
#include <unordered_set>

#include <tenon/error.h>
#include <tenon/nn.h>

#include "base/make_error.h"
#include "base/per_thread.h"
#include "base/str.h"
#include "graph/node.h"
#include "graph/tracing/traced_state.h"
#include "nn/state.h"
#include "nn/walk.h"

namespace tenon::nn {
namespace {

thread_local CallObserver* t_observer = nullptr;
thread_local int t_depth = 0;   // nesting depth of calls
constexpr int kDeepest = 1000;  // fits a stack of 8 MiB with room for the called functions

// The path of the module being called.
std::string& path_of_thread() {
  static const PerThread<std::string> path;
  return path.get();
}

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : name.empty() ? prefix : prefix + "." + name;
}

// The last name outside angle brackets: "Residual" for "(anonymous namespace)::Residual".
std::string type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  const std::string_view name = status == 0 ? text.get() : type.name();
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t k = 0; k < name.size(); ++k) {
    if (name[k] == '<' || name[k] == '(') ++depth;
    if (name[k] == '>' || name[k] == ')') --depth;
    if (depth == 0 && name[k] == ':') start = k + 1;
  }
  return std::string(name.substr(start));
}

// Does not call describe(), because the module's constructor is still running.
void check_name(const std::string& name) {
  if (name.empty() || name.find('.') != std::string::npos)
    throw make_error<ValueError>(
        "module: '", name,
        "' cannot name a part of a module: a name must not be empty or contain a dot");
}

// What compiled functions read of a module (graph/tracing/traced_state.h).
const ModuleState& state_at(const void* object) { return *static_cast<const ModuleState*>(object); }
std::uint64_t training_of(const void* object) { return state_at(object).training ? 1 : 0; }
std::uint64_t precision_of(const void* object) {
  const std::optional<Precision>& precision = state_at(object).precision;
  return precision ? 1 + static_cast<std::uint64_t>(*precision) : 0;
}
std::uint64_t children_of(const void* object) { return state_at(object).children.size(); }
std::uint64_t replaced_of(const void* object) { return state_at(object).replaced; }
std::uint64_t hooks_of(const void* object) { return state_at(object).hooks_changed; }

// Sets a value that compiled functions may have read.
template <class T>
void change(ModuleState& state, T ModuleState::*value, const T& to, StateReader read) {
  note_state_written(&state, read);
  if (state.*value == to) return;
  state.*value = to;
  note_state_changed();
}

}  // namespace

// A trace that read the module is no longer valid.
ModuleState::~ModuleState() { note_state_changed(); }

// Visits the states of a module and its descendants, parents first, each state once.
void Walk::states(const ModuleBase& root,
                  const std::function<void(ModuleState& state, const std::string& path)>& visit) {
  std::unordered_set<const void*> seen;
  auto go = [&](auto&& self, const ModuleBase& module, const std::string& path) -> void {
    if (!seen.insert(module.state_.get()).second) return;
    visit(*module.state_, path);
    for (const auto& [name, child] : module.state_->children) self(self, child, join(path, name));
  };
  go(go, root, "");
}

ModuleBase::ModuleBase() : state_(std::make_shared<ModuleState>()) {}
ModuleBase::~ModuleBase() = default;

// A vector of modules that grows copies them: a function that captured the vector calls the copies.
ModuleBase::ModuleBase(const ModuleBase& other)
    : state_(copied(other.state_)),
      traced_(state_ == other.state_ &&
              std::atomic_ref(other.traced_).load(std::memory_order_relaxed)) {}

// A compiled function cannot see that the handle which it captured has changed, only that the state
// behind it has. A function that replaces handles while it is traced, as a loop over layers does,
// will do so whenever it is traced.
ModuleBase& ModuleBase::operator=(const ModuleBase& other) {
  if (this == &other) return *this;
  if (traced_ && state_ != other.state_ && !is_tracing()) {
    ++state_->replaced;
    note_state_changed();
  }
  state_ = copied(other.state_);
  return *this;
}

std::string ModuleBase::describe() const { return type_name(typeid(*this)); }

thread_local ModuleBase::Call* ModuleBase::t_call = nullptr;

ModuleBase::Call::Call(const ModuleBase& module)
    : module_(module), path_length_(path_of_thread().size()), outer_(t_call) {
  if (t_depth >= kDeepest)
    throw make_error<ValueError>("module: ", kDeepest, " nested calls, the last one of ",
                                 module.describe(), ": does its forward() call itself?");
  const ModuleState& state = *module.state_;
  if (outer_ != nullptr && !state.registered && state.training) {
    const Call* root = outer_;
    while (root->outer_ != nullptr) root = root->outer_;
    Walk::require_registered(module, outer_->module_, root->module_);
  }
  if (is_tracing()) Walk::note_called(module);
  for (const ModuleState::Hook& hook : state.hooks) {
    replaces_inputs_ |= !hook.after;
    hooks_outputs_ |= !hook.before;
  }
  if (!state.name.empty()) scope_.emplace(state.name);
  if (state.precision) precision_.emplace(*state.precision);
  path_of_thread() = join(path_of_thread(), state.name);
  t_call = this;
  ++t_depth;
}

ModuleBase::Call::~Call() {
  --t_depth;
  t_call = outer_;
  path_of_thread().resize(path_length_);
}

bool ModuleBase::Call::needs_inputs() const {
  return t_observer != nullptr || replaces_inputs_ || hooks_outputs_;
}

void ModuleBase::Call::take_input(const Tensor& input) { inputs_.push_back(input); }

void ModuleBase::Call::end() {
  if (outputs_.empty() && !updates_.empty())
    throw make_error<ValueError>(
        where("update"), ": ", module_.describe(),
        " returns no tensor that could carry the update: return one, or write "
        "each_tensor() for what it returns");
  for (const CallObserver* o = t_observer; o != nullptr; o = o->previous_)
    o->function_(path_of_thread(), module_, inputs_, outputs_);
}

Tensor Module::operator()(const Tensor& x) const {
  Call call(*this);
  if (!x.defined()) {
    const std::string text = describe();
    throw make_error<ValueError>(where(text.substr(0, text.find('(')).c_str()),
                                 ": its input has no value: it was never assigned");
  }
  call.take_inputs(x);
  Tensor input = x;
  if (call.replaces_inputs()) call.replace_inputs(input);
  Tensor y = forward(input);
  call.give_outputs(y);
  return y;
}

CallObserver::CallObserver(Callback f) : function_(std::move(f)), previous_(t_observer) {
  if (!function_) throw ValueError("CallObserver: the function is empty");
  t_observer = this;
}
CallObserver::~CallObserver() { t_observer = previous_; }

Tensor ModuleBase::parameter(const std::string& name, const Tensor& init) {
  check_name(name);
  Tensor t = variable(init, name);
  add_entry(name, t, false);
  return t;
}

Tensor ModuleBase::tie(const std::string& name, const Tensor& parameter) {
  check_name(name);
  if (!parameter.defined() || !is_variable(parameter))
    throw make_error<ValueError>("module: '", name, "' can only be tied to a parameter");
  add_entry(name, parameter, false);
  return parameter;
}

Tensor ModuleBase::buffer(const std::string& name, const Tensor& init) {
  check_name(name);
  Tensor t = variable(init, name);
  add_entry(name, t, true);
  return t;
}

void ModuleBase::add_entry(const std::string& name, const Tensor& tensor, bool is_buffer) {
  if (!state_->entry_names.insert(name).second)
    throw make_error<ValueError>("module: there are two parameters named '", name, "'");
  state_->entries.push_back({name, tensor, is_buffer});
}

void ModuleBase::update(const Tensor& buffer, const Tensor& value) const {
  if (!is_training()) return;
  if (t_call == nullptr)
    throw make_error<ValueError>(
        where("update"), ": no module is being called: call the module itself, not its forward()");
  for (const Tensor& made : t_call->updates_)
    if (made.node()->input(0) == buffer.node())
      throw make_error<ValueError>(where("update"), ": ", label_text(buffer.node()->label),
                                   " is updated twice in one call");
  t_call->updates_.push_back(assign(buffer, value));
}

void ModuleBase::add_child(const std::string& name, const AnyModule& module) {
  check_name(name);
  if (state_->child_names.contains(name))
    throw make_error<ValueError>("module: there are two children named '", name, "'");
  Walk::states(module, [&](const ModuleState& below, const std::string&) {
    if (&below == state_.get())
      throw make_error<ValueError>("module: '", name, "' would make a module its own descendant");
  });
  // A list is not called itself, so the list's name precedes the names of its modules, and its
  // modules are registered once the list is.
  const bool in_list = state_->is_list;
  const bool registered = !in_list || state_->registered;
  const auto name_it = [registered](auto&& self, const AnyModule& called,
                                    const std::string& by) -> void {
    called.state_->name = by;
    called.state_->registered = called.state_->registered || registered;
    if (!called.state_->is_list) return;
    for (const auto& [own, child] : called.state_->children) self(self, child, join(by, own));
  };
  name_it(name_it, module, in_list ? join(state_->name, name) : name);
  state_->children.emplace_back(name, module);
  note_state_changed();
  state_->child_names.insert(name);
  for (const ModuleState::Entry& own : state_->entries) state_->labelled.insert(own.tensor.node());
  Walk::entries(module, [&](const std::string& path, const ModuleState::Entry& entry) {
    Node* node = entry.tensor.node();
    if (state_->labelled.insert(node).second) node->label = intern_label(join(name, path));
  });
}

AnyModule::AnyModule(const ModuleBase* module, CallOf call, CopyOf copy)
    : AnyModule(std::shared_ptr<const ModuleBase>(module), call, copy) {}

AnyModule::AnyModule(std::shared_ptr<const ModuleBase> module, CallOf call, CopyOf copy)
    : module_(std::move(module)), call_(call), copy_(copy) {
  if (module_ == nullptr) throw ValueError("AnyModule: the pointer is null");
  state_ = module_->state_;
}

Tensor AnyModule::forward(const Tensor& x) const {
  if (call_ == nullptr)
    throw make_error<NotSupported>(
        where("module"), ": ", describe(),
        " does not take one tensor and return one: call it with its own type, "
        "through as<Type>()");
  return call_(*module_, x);
}

// Such a layer would keep its initial values, be missing in checkpoints and stay in training mode.
// A network that is meant to be constant, such as a teacher, is in evaluation mode or frozen.
void Walk::require_registered(const ModuleBase& module, const ModuleBase& caller,
                              const ModuleBase& root) {
  std::unordered_set<const Node*> learning;
  entries(module, [&](const std::string&, const ModuleState::Entry& entry) {
    const Node* node = entry.tensor.node();
    if (!entry.buffer && !node->leaf->frozen) learning.insert(node);
  });
  if (learning.empty()) return;
  entries(root, [&](const std::string&, const ModuleState::Entry& entry) {
    learning.erase(entry.tensor.node());
  });
  if (learning.empty()) return;  // registered as parameters (tie())
  throw make_error<ValueError>(
      caller.describe(), ": forward() calls ", module.describe(),
      ", which is not registered, so its parameters would not learn and not be saved: register the "
      "layer in the constructor with child(name, layer), or call eval() or freeze() of a network "
      "that must not learn");
}

void Walk::note_called(const ModuleBase& module) {
  std::atomic_ref(module.traced_).store(true, std::memory_order_relaxed);
  for (const StateReader read : {precision_of, children_of, replaced_of, hooks_of})
    note_state_read(module.state_, read);
  // Lists are not called themselves.
  for (const auto& [name, child] : module.state_->children)
    if (is_list(child)) note_called(child);
}

void Walk::entries(const ModuleBase& root, const Visitor& visit) {
  std::unordered_set<const Node*> seen;
  states(root, [&](ModuleState& state, const std::string& path) {
    for (ModuleState::Entry& entry : state.entries)
      if (seen.insert(entry.tensor.node()).second) visit(join(path, entry.name), entry);
  });
}

void Walk::names(const ModuleBase& root, const Visitor& visit) {
  const auto go = [&](auto&& self, const ModuleBase& module, const std::string& path) -> void {
    for (ModuleState::Entry& entry : module.state_->entries) visit(join(path, entry.name), entry);
    for (const auto& [name, child] : module.state_->children) self(self, child, join(path, name));
  };
  go(go, root, "");
}

std::vector<NamedTensor> ModuleBase::named_parameters() const {
  std::vector<NamedTensor> out;
  Walk::entries(*this, [&](const std::string& path, ModuleState::Entry& e) {
    if (!e.buffer) out.push_back({path, e.tensor});
  });
  return out;
}

std::vector<NamedTensor> ModuleBase::named_buffers() const {
  std::vector<NamedTensor> out;
  Walk::entries(*this, [&](const std::string& path, ModuleState::Entry& e) {
    if (e.buffer) out.push_back({path, e.tensor});
  });
  return out;
}

std::vector<NamedTensor> ModuleBase::named_trainable_parameters() const {
  std::vector<NamedTensor> out;
  Walk::entries(*this, [&](const std::string& path, ModuleState::Entry& e) {
    if (!e.buffer && !is_frozen(e.tensor)) out.push_back({path, e.tensor});
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

std::vector<Tensor> ModuleBase::parameters() const { return tensors(named_parameters()); }
std::vector<Tensor> ModuleBase::trainable_parameters() const {
  return tensors(named_trainable_parameters());
}

std::int64_t ModuleBase::parameter_count() const {
  std::int64_t count = 0;
  for (const NamedTensor& p : named_parameters()) count += p.tensor.numel();
  return count;
}

std::vector<std::pair<std::string, AnyModule>> ModuleBase::children() const {
  return state_->children;
}

void ModuleBase::train(bool on) {
  Walk::states(*this, [&](ModuleState& state, const std::string&) {
    change(state, &ModuleState::training, on, training_of);
  });
}

bool ModuleBase::is_training() const {
  note_state_read(state_, training_of);
  return state_->training;
}

void ModuleBase::set_frozen(const std::string& path, bool frozen) {
  int found = 0;
  std::vector<std::string> names;
  Walk::entries(*this, [&](const std::string& name, ModuleState::Entry& entry) {
    if (entry.buffer) return;
    names.push_back(name);
    if (!path.empty() && name != path && name.rfind(path + ".", 0) != 0) return;
    tenon::set_frozen(entry.tensor, frozen);
    ++found;
  });
  if (found != 0 || path.empty()) return;
  const std::string near = nearest(path, names.data(), static_cast<int>(names.size()));
  throw make_error<ValueError>(frozen ? "freeze" : "unfreeze", ": there is no parameter at '", path,
                               "'", near.empty() ? "" : cat("; did you mean '", near, "'?"));
}

void ModuleBase::set_precision(Precision precision, const std::string& path) {
  bool found = false;
  std::vector<std::string> names;
  Walk::states(*this, [&](ModuleState& state, const std::string& name) {
    if (!name.empty()) names.push_back(name);
    if (name != path) return;
    change(state, &ModuleState::precision, std::optional(precision), precision_of);
    found = true;
  });
  if (found) return;
  const std::string near = nearest(path, names.data(), static_cast<int>(names.size()));
  throw make_error<ValueError>("set_precision: there is no module '", path, "'",
                               near.empty() ? "" : cat("; did you mean '", near, "'?"));
}

bool ModuleBase::has_precision(Precision precision) const {
  bool found = false;
  Walk::states(*this, [&](ModuleState& state, const std::string&) {
    found |= state.precision == precision;
  });
  return found;
}

Walk::Modes Walk::modes(const ModuleBase& root) {
  Modes out;
  std::unordered_set<const void*> seen;
  const auto add = [&](const auto& self, const ModuleBase& module) -> void {
    if (!seen.insert(module.state_.get()).second) return;
    out.emplace_back(module.state_, module.state_->training);
    for (const auto& [name, child] : module.state_->children) self(self, child);
  };
  add(add, root);
  return out;
}

void Walk::set_modes(const Modes& modes) noexcept {
  for (const auto& [state, training] : modes)
    change(*state, &ModuleState::training, training, training_of);
}

std::int64_t Walk::own_parameters(const ModuleBase& module,
                                  std::unordered_set<const Node*>& counted) {
  std::int64_t count = 0;
  for (const auto& entry : module.state_->entries)
    if (!entry.buffer && counted.insert(entry.tensor.node()).second) count += entry.tensor.numel();
  return count;
}

}  // namespace tenon::nn

// Deep copies of modules.
//
// Only the copy constructor of a module's class knows the class's members. So clone() first creates
// the states and variables of the copy, and then copies the object while each copy of a handle
// looks up the state or variable that it is to refer to. A class needs no code of its own for that.
#include <typeindex>
#include <unordered_map>

#include <tenon/error.h>
#include <tenon/module.h>

#include "base/make_error.h"
#include "base/str.h"
#include "graph/cloned.h"
#include "graph/node.h"
#include "graph/tracing/traced_state.h"
#include "nn/walk.h"

namespace tenon::nn {

namespace detail {

struct CloneScope::Impl {
  std::unordered_map<const ModuleState*, std::shared_ptr<ModuleState>> states;
  std::unordered_map<const ModuleBase*, std::shared_ptr<const ModuleBase>> objects;
  ClonedVariables variables;
  Impl* outer = nullptr;
  const ClonedVariables* outer_variables = nullptr;

  void copy_variables(const ModuleBase& root);
  void copy_states(const ModuleBase& root);
  void copy_children();
};

}  // namespace detail

namespace {

thread_local detail::CloneScope::Impl* t_clone = nullptr;

// The root of a clone is in no module. The names of modules in a list begin with the list's name.
void become_root(ModuleState& state, const std::string& name) {
  state.name = name;
  state.registered = false;
  if (!state.is_list) return;
  for (const auto& [own, child] : state.children)
    become_root(Walk::state(child), name.empty() ? own : cat(name, ".", own));
}

}  // namespace

std::shared_ptr<ModuleState> copied(const std::shared_ptr<ModuleState>& state) {
  if (t_clone == nullptr) return state;
  const auto clone = t_clone->states.find(state.get());
  return clone == t_clone->states.end() ? state : clone->second;
}

namespace detail {

// Each tensor once, so tied weights stay tied.
void CloneScope::Impl::copy_variables(const ModuleBase& root) {
  Walk::entries(root, [this](const std::string& path, const ModuleState::Entry& entry) {
    const Tensor& clone =
        variables.emplace(entry.tensor.node(), variable(entry.tensor, path)).first->second;
    if (entry.tensor.node()->leaf->frozen) set_frozen(clone, true);
  });
}

void CloneScope::Impl::copy_states(const ModuleBase& root) {
  Walk::states(root, [this](const ModuleState& state, const std::string&) {
    auto clone = std::make_shared<ModuleState>();
    clone->name = state.name;
    clone->training = state.training;
    clone->registered = state.registered;
    clone->is_list = state.is_list;
    clone->precision = state.precision;
    clone->hooks = state.hooks;
    clone->hooks_added = state.hooks_added;
    clone->entry_names = state.entry_names;
    clone->child_names = state.child_names;
    for (const ModuleState::Entry& entry : state.entries)
      clone->entries.push_back({entry.name, variables.at(entry.tensor.node()), entry.buffer});
    for (const auto& [original, tensor] : variables)
      if (state.labelled.contains(original)) clone->labelled.insert(tensor.node());
    states.emplace(&state, std::move(clone));
  });
}

// Copies of handles refer to the clone by now.
void CloneScope::Impl::copy_children() {
  for (const auto& [state, clone] : states)
    for (const auto& [name, child] : state->children) clone->children.emplace_back(name, child);
}

CloneScope::CloneScope(const ModuleBase& module, const std::type_info& type)
    : impl_(std::make_unique<Impl>()) {
  if (typeid(module) != type)
    throw make_error<ValueError>("clone: ", module.describe(),
                                 " is given as a reference to one of its base classes, and a copy "
                                 "would be of that class: call clone() with its own type, or hold "
                                 "it in an nn::AnyModule");
  if (is_tracing())
    throw ValueError(
        "clone: a module is cloned inside a function that is being compiled: clone it before");
  impl_->copy_variables(module);
  impl_->copy_states(module);
  impl_->outer = std::exchange(t_clone, impl_.get());
  impl_->outer_variables = set_cloned_variables(&impl_->variables);
  try {
    impl_->copy_children();
    become_root(*impl_->states.at(&Walk::state(module)), "");
  } catch (...) {
    end();
    throw;
  }
}

void CloneScope::end() noexcept {
  t_clone = impl_->outer;
  set_cloned_variables(impl_->outer_variables);
}

CloneScope::~CloneScope() { end(); }

// Handles in several places to one object refer to one copy of the object.
std::shared_ptr<const ModuleBase> CloneScope::object_of(const AnyModule& module) {
  if (t_clone == nullptr || !t_clone->states.contains(&Walk::state(module))) return module.module_;
  std::shared_ptr<const ModuleBase>& clone = t_clone->objects[module.module_.get()];
  if (clone != nullptr) return clone;
  const ModuleBase& object = *module.module_;
  const ModuleBase* const copy = module.copy_ == nullptr ? nullptr : module.copy_(object);
  clone.reset(copy);
  if (copy == nullptr || typeid(*copy) != typeid(object))
    throw make_error<NotSupported>(
        "clone: ", object.describe(),
        " cannot be copied: its class has no public copy constructor, or its AnyModule was made of "
        "a pointer to a base class. Pass the module itself or a pointer to its own type, or build "
        "a new module and call load_state_dict()");
  return clone;
}

}  // namespace detail

AnyModule::AnyModule(const AnyModule& other)
    : Module(other),
      module_(detail::CloneScope::object_of(other)),
      call_(other.call_),
      copy_(other.copy_) {}

}  // namespace tenon::nn

// Hooks of modules: registration, and what a call does with them.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/module.h>

#include "base/make_error.h"
#include "graph/traced_state.h"
#include "nn/walk.h"

namespace tenon::nn {
namespace {

// Hooks may add and remove hooks, so calls iterate over a copy of the list.
template <class Hook, class F>
void each_hook(std::vector<ModuleState::Hook> hooks, F&& f) {
  for (const ModuleState::Hook& hook : hooks)
    if (const Hook* call = std::get_if<Hook>(hook.call.get())) f(*call);
}

void require_count(const ModuleBase& module, const char* kind, std::size_t before,
                   std::size_t after) {
  if (before != after)
    throw make_error<ValueError>(kind, " of ", module.describe(), " leaves ", after,
                                 " tensors where there were ", before,
                                 ": replace elements of the list, but keep their number");
}

void require_defined(const ModuleBase& module, const char* kind,
                     const std::vector<Tensor>& tensors) {
  for (std::size_t k = 0; k < tensors.size(); ++k)
    if (!tensors[k].defined())
      throw make_error<ValueError>(kind, " of ", module.describe(), " leaves tensor ", k,
                                   " without a value");
}

void note_hooks_changed(ModuleState& state) {
  ++state.hooks_changed;
  note_state_changed();
}

}  // namespace

void HookHandle::remove() {
  if (const std::shared_ptr<ModuleState> state = state_.lock())
    if (std::erase_if(state->hooks, [this](const auto& hook) { return hook.id == id_; }) > 0)
      note_hooks_changed(*state);
}

template <class Hook>
HookHandle ModuleBase::add_hook(const char* function, Hook hook) {
  if (!hook) throw make_error<ValueError>(function, ": the function is empty");
  if (state_->is_list)
    throw make_error<ValueError>(function, ": ", describe(),
                                 " is not called itself: register the hook of its modules");
  HookHandle handle;
  handle.state_ = state_;
  handle.id_ = ++state_->hooks_added;
  state_->hooks.push_back(
      {handle.id_, std::make_shared<const std::variant<ForwardPreHook, ForwardHook, BackwardHook>>(
                       std::move(hook))});
  note_hooks_changed(*state_);
  return handle;
}

HookHandle ModuleBase::register_forward_pre_hook(ForwardPreHook hook) {
  return add_hook("register_forward_pre_hook", std::move(hook));
}

HookHandle ModuleBase::register_forward_hook(ForwardHook hook) {
  return add_hook("register_forward_hook", std::move(hook));
}

void ModuleBase::Call::call_input_hooks() {
  const std::size_t count = inputs_.size();
  each_hook<ForwardPreHook>(module_.state_->hooks, [&](const ForwardPreHook& hook) {
    hook(module_, inputs_);
    require_count(module_, "a forward pre-hook", count, inputs_.size());
    require_defined(module_, "a forward pre-hook", inputs_);
  });
}

void ModuleBase::Call::replace_input(Tensor& input, std::size_t k) const { input = inputs_[k]; }

void ModuleBase::Call::replace_input(const Tensor& input, std::size_t k) const {
  if (input.node() != inputs_[k].node())
    throw make_error<ValueError>("a hook of ", module_.describe(), " replaces input ", k,
                                 ", which is in a list of constant tensors: let forward() take a "
                                 "std::vector<Tensor>");
}

void ModuleBase::Call::visit_output(Tensor& output) {
  if (hooks_outputs_) {
    hooked_.push_back(output);
    return;
  }
  if (given_ < hooked_.size()) output = hooked_[given_++];
  output = with_updates(output, updates_);
  outputs_.push_back(output);
}

void ModuleBase::Call::call_output_hooks() {
  const std::size_t count = hooked_.size();
  each_hook<ForwardHook>(module_.state_->hooks, [&](const ForwardHook& hook) {
    hook(module_, inputs_, hooked_);
    require_count(module_, "a forward hook", count, hooked_.size());
    require_defined(module_, "a forward hook", hooked_);
  });
  hooks_outputs_ = false;
}

}  // namespace tenon::nn

// Hooks of modules: registration, and what a call does with them.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/function.h>
#include <tenon/module.h>

#include "base/make_error.h"
#include "graph/node.h"
#include "graph/order.h"
#include "graph/tracing/traced_state.h"
#include "nn/walk.h"

namespace tenon::nn {
namespace {

using Hooks = std::vector<ModuleState::Hook>;

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

// What a backward hook gets as its module: a handle of the state, because the object that was
// called may be gone when gradients are built.
class CalledModule final : public ModuleBase {
 public:
  explicit CalledModule(const ModuleBase& module) : ModuleBase(module), text_(module.describe()) {}
  std::string describe() const override { return text_; }

 private:
  std::string text_;
};

// Whether a gradient with respect to a parameter that learns may flow through the tensors.
bool learn(const std::vector<Tensor>& tensors) {
  const std::vector<Node*> nodes = topological_order(tensors, true);
  return std::any_of(nodes.begin(), nodes.end(), [](Node* node) {
    return node->op == Op::Variable && !is_frozen(Tensor(node));
  });
}

using Backward = std::function<std::vector<Tensor>(const std::vector<Tensor>& gradients)>;

// The same tensors, whose gradients `backward` replaces.
std::vector<Tensor> passed(const std::vector<Tensor>& tensors, Backward backward) {
  if (tensors.empty()) return tensors;
  const Function function(
      "backward hook",
      [](FunctionContext&, const std::vector<Tensor>& arguments) { return arguments; },
      [backward = std::move(backward)](const FunctionContext&, const std::vector<Tensor>& given) {
        return backward(given);
      });
  return function.apply(tensors);
}

}  // namespace

// The gradients of one call. Those of the outputs are complete before those of the inputs.
struct ModuleBase::Call::Gradients {
  CalledModule module;
  Hooks hooks;
  std::vector<Tensor> outputs{};

  // A second derivative may reach the inputs without passing the outputs. It runs no hook.
  std::vector<Tensor> call(std::vector<Tensor> inputs) {
    const std::size_t count = inputs.size();
    const std::vector<Tensor> given = std::exchange(outputs, {});
    if (given.empty()) return inputs;
    for (const ModuleState::Hook& hook : hooks) {
      if (!hook.backward) continue;
      hook.backward(module, inputs, given);
      require_count(module, "a backward hook", count, inputs.size());
    }
    return inputs;
  }
};

void HookHandle::remove() {
  if (const std::shared_ptr<ModuleState> state = state_.lock())
    if (std::erase_if(state->hooks, [this](const auto& hook) { return hook.id == id_; }) > 0)
      note_hooks_changed(*state);
}

// `Hook` is ModuleState::Hook, which the header cannot name.
template <class Hook>
HookHandle ModuleBase::add_hook(const char* function, Hook hook) {
  if (hook.is_empty()) throw make_error<ValueError>(function, ": the function is empty");
  if (state_->is_list)
    throw make_error<ValueError>(function, ": ", describe(),
                                 " is not called itself: register the hook of its modules");
  HookHandle handle;
  handle.state_ = state_;
  handle.id_ = hook.id = ++state_->hooks_added;
  state_->hooks.push_back(std::move(hook));
  note_hooks_changed(*state_);
  return handle;
}

HookHandle ModuleBase::register_forward_pre_hook(ForwardPreHook hook) {
  return add_hook("register_forward_pre_hook", ModuleState::Hook{.before = std::move(hook)});
}

HookHandle ModuleBase::register_forward_hook(ForwardHook hook) {
  return add_hook("register_forward_hook", ModuleState::Hook{.after = std::move(hook)});
}

HookHandle ModuleBase::register_full_backward_hook(BackwardHook hook) {
  return add_hook("register_full_backward_hook", ModuleState::Hook{.backward = std::move(hook)});
}

// A hook may add and remove hooks, so the calls iterate over copies of the list.
void ModuleBase::Call::call_input_hooks() {
  const std::size_t count = inputs_.size();
  const Hooks hooks = module_.state_->hooks;
  bool any_backward = false;
  for (const ModuleState::Hook& hook : hooks) {
    any_backward |= hook.backward != nullptr;
    if (!hook.before) continue;
    hook.before(module_, inputs_);
    require_count(module_, "a forward pre-hook", count, inputs_.size());
    require_defined(module_, "a forward pre-hook", inputs_);
  }
  if (!any_backward) return;
  gradients_ = std::make_shared<Gradients>(Gradients{CalledModule(module_), hooks});
  if (!learn(inputs_)) return;
  inputs_learn_ = true;
  inputs_ = passed(inputs_, [gradients = gradients_](const std::vector<Tensor>& inputs) {
    return gradients->call(inputs);
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
  for (const Hooks hooks = module_.state_->hooks; const ModuleState::Hook& hook : hooks) {
    if (!hook.after) continue;
    hook.after(module_, inputs_, hooked_);
    require_count(module_, "a forward hook", count, hooked_.size());
    require_defined(module_, "a forward hook", hooked_);
  }
  if (gradients_ != nullptr)
    hooked_ = passed(hooked_, [gradients = gradients_, at_inputs = inputs_learn_,
                               count = inputs_.size()](const std::vector<Tensor>& outputs) {
      gradients->outputs = outputs;
      if (!at_inputs) gradients->call(std::vector<Tensor>(count));
      return outputs;
    });
  hooks_outputs_ = false;
}

}  // namespace tenon::nn

// The public class Plan: texts and statistics of a planned program.
#include <memory>

#include <tenon/error.h>

#include "run/api/plan_api.h"

#include "graph/effects.h"
#include "graph/node.h"
#include "graph/order.h"
#include "run/api/settings.h"

namespace tenon {

Plan::Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

std::int64_t Plan::peak_bytes() const { return impl_->program->peak_bytes(); }
std::int64_t Plan::arena_bytes() const { return impl_->program->arena_bytes; }
std::int64_t Plan::leaf_bytes() const { return impl_->program->leaf_bytes; }
int Plan::step_count() const { return static_cast<int>(impl_->program->steps.size()); }
int Plan::node_count() const { return impl_->program->node_count; }
double Plan::planning_ms() const { return impl_->program->planning_ms; }

std::string Plan::graph() const { return print_graph(*impl_->program); }
std::string Plan::steps() const { return print_steps(*impl_->program); }
std::string Plan::engines() const { return print_engines(*impl_->program); }
std::string Plan::arena() const { return print_arena(*impl_->program); }
std::string Plan::fusion() const { return print_fusion(*impl_->program); }
std::string Plan::passes() const { return print_passes(*impl_->program); }

Plan plan(TensorList tensors) {
  std::vector<Tensor> roots;
  for (const Tensor& t : tensors) {
    if (!t.defined()) throw ValueError("plan: a tensor has no value: it was never assigned");
    if (!t.node()->realised()) roots.push_back(t);
  }
  roots = with_effects(roots, topological_order(roots)).roots;
  std::vector<Node*> leaves;
  for (Node* node : topological_order(roots))
    if (node->realised()) leaves.push_back(node);
  auto impl = std::make_shared<Plan::Impl>();
  impl->program = plan_program(
      roots, leaves, plan_options(current_context(), roots.empty() ? Device{} : roots[0].device()));
  return Plan(std::move(impl));
}

}  // namespace tenon

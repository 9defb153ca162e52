// Graphs that were planned before. At the same sizes, an existing program is reused while anybody
// holds it, and a second thread waits for the first thread's plan: a graph is planned once, however
// many functions compute it. At other sizes the plan is re-bound instead of made anew (on the CPU;
// on GPUs see known_plans.cpp).
//
// Entries are keyed by a graph's structure apart from its sizes (graph/form.h). Each entry holds
// the sizes planned last and what was learned from two of them (plan/steps/sized_plan.h). Shared by
// all threads and functions; bounded together with the other caches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "graph/order.h"
#include "plan/program/program.h"

namespace tenon {

/// The program of `roots`: known, re-bound or planned; the result is the same in all cases.
/// `order`: all nodes of the graph. `planning`: everything else that planning depends on
/// (planning_key()).
std::shared_ptr<const Program> known_or_planned(const NumberedOrder& order,
                                                std::span<const Tensor> roots,
                                                std::span<Node* const> leaves,
                                                const PlanOptions& options, std::uint64_t planning);

/// Number of programs re-bound so far, by all threads.
std::int64_t programs_rebound() noexcept;

}  // namespace tenon

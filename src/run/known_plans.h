// Graphs that were planned before. At the same size, their program serves while anybody holds it,
// and a second thread waits for the first one's plan: a graph is planned once, however many
// functions compute it. At another size (on the CPU) their plans are re-bound instead of made.
//
// By what a graph is apart from its sizes (graph/form.h): the sizes at which it was planned last,
// and what was learned from two of them (plan/sized_plan.h). Of all threads and functions; bounded
// with the other caches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "graph/node_index.h"
#include "plan/program.h"

namespace tenon {

/// The program of `roots`, known, re-bound or planned; all give the same one. `order` is all nodes
/// of the graph, `planning` what planning depends on beside them (planning_key()).
std::shared_ptr<const Program> known_or_planned(const NumberedOrder& order,
                                                std::span<const Tensor> roots,
                                                std::span<Node* const> leaves,
                                                const PlanOptions& options, std::uint64_t planning);

/// Programs that were re-bound so far, by all threads.
std::int64_t programs_rebound() noexcept;

}  // namespace tenon

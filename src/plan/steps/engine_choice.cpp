// Asks the engines in the order of their estimates, until one prepares the step's kernel.
#include "plan/steps/engine_choice.h"

#include <tenon/error.h>

#include "base/str.h"
#include "graph/node.h"

namespace tenon {

void choose_by_estimate(Step& step, std::span<const Value> values, const PlanOptions& options) {
  std::string& passed_over = step.passed_over;
  for (const Engine* engine : by_estimate(options.engines, step.region, values, &passed_over)) {
    try {
      step.kernel = engine->prepare(step.region, values, options.threads);
      step.engine = engine;
      return;
    } catch (const NotSupported& e) {  // for example, a library has no kernel for the region
      passed_over += cat(passed_over.empty() ? "" : "; ", engine->name(), ": ", e.what());
    }
  }
  throw NotSupported(cat("no engine runs ", step.region.title, " (", label_text(step.region.label),
                         "): ", step.passed_over));
}

}  // namespace tenon

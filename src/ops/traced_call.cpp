// Calls of a user's function, for transforms of functions.
#include "ops/traced_call.h"

#include <tenon/error.h>

#include "base/make_error.h"
#include "graph/node.h"
#include "graph/recording.h"

namespace tenon {

void check_all_defined(const char* op, const char* what, TensorList tensors) {
  for (std::size_t k = 0; k < tensors.size(); ++k)
    if (!tensors[k].defined())
      throw make_error<ValueError>(where(op), ": ", what, " ", k,
                                   " has no value: it was never assigned");
}

std::vector<Tensor> traced_call(const char* op, const TensorFunction& f,
                                const std::vector<Tensor>& arguments) {
  check_all_defined(op, "argument", arguments);
  if (f.arguments() >= 0 && f.arguments() != std::ssize(arguments))
    throw make_error<ValueError>(where(op), ": the function takes ", f.arguments(),
                                 " tensors and was given ", arguments.size());
  const Recording inlines_compiled_functions;
  std::vector<Tensor> results = f(arguments);
  if (results.empty()) throw make_error<ValueError>(where(op), ": the function returns no tensor");
  check_all_defined(op, "result", results);
  return results;
}

}  // namespace tenon

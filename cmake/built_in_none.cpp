// A library without kernels that were compiled ahead.
#include "cuda/jit/built_in.h"

namespace tenon::cuda {

std::string_view built_in_store() { return {}; }

}  // namespace tenon::cuda

// The body of the public Plan.
#pragma once

#include <tenon/eval.h>

#include "plan/program.h"

namespace tenon {

struct Plan::Impl {
  std::shared_ptr<const Program> program;
};

}  // namespace tenon

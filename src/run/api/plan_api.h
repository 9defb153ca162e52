// The implementation data of the public class Plan.
#pragma once

#include <tenon/compute.h>

#include "plan/program/program.h"

namespace tenon {

struct Plan::Impl {
  std::shared_ptr<const Program> program;
};

}  // namespace tenon

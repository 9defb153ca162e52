// Images between 16-bit convolutions that lie with their channels last: stored in 16 bits.
#pragma once

#include "plan/graph_passes.h"

namespace tenon {

Roots narrow_images(Roots roots);

}  // namespace tenon

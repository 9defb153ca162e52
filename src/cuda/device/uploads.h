// Copies batches to a GPU while other work runs.
#pragma once

#include <cstddef>
#include <memory>

#include "device/uploads.h"

namespace tenon::cuda {

std::unique_ptr<Uploads> make_uploads(int slots, std::size_t bytes, int index);
std::unique_ptr<IdleClock> make_idle_clock(int index);

}  // namespace tenon::cuda

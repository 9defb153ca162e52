// Memory of GPUs beyond Buffer's needs: copies that overlap with work.
#pragma once

#include <cstddef>

#include "cuda/device/gpu.h"
#include "device/memory.h"

namespace tenon::cuda {

/// Queues a copy from host memory on the GPU's copy stream, where it overlaps with work. The host
/// memory may be reused on return. The copy waits for all work queued so far, so earlier work no
/// longer reads `to`. The event signals that the bytes have arrived.
Event copy_async(void* to, const void* from, std::size_t bytes, int index);
/// Makes all work queued from now on wait for the event.
void work_after(const Event& event, int index);

}  // namespace tenon::cuda

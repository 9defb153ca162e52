// Memory of GPUs beyond what Buffer needs: copies that run beside the work.
#pragma once

#include <cstddef>

#include "cuda/device/gpu.h"
#include "device/memory.h"

namespace tenon::cuda {

/// Queues a copy from host memory on the GPU's copy stream, where it overlaps with work. The host
/// memory may be reused when this returns; `to` is free of earlier work's reads because the copy
/// waits for everything queued so far. The event tells when the bytes are there.
Event copy_async(void* to, const void* from, std::size_t bytes, int index);
/// Lets all work queued from now on wait for the event.
void work_after(const Event& event, int index);

}  // namespace tenon::cuda

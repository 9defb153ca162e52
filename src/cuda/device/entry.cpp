// The part of cuda.h that is about cards and their streams.
#include "cuda/cuda.h"
#include "cuda/device/card.h"
#include "cuda/device/driver.h"

namespace tenon::cuda {

int card_count() noexcept { return usable_cards(); }

Target target_of(int index) { return card_at(index).target; }

void* stream(int index) { return context_of(index).work; }

void synchronize(int index) {
  const Context& context = context_of(index);
  check(driver().cuStreamSynchronize(context.work), "waiting for ", context.title());
}

}  // namespace tenon::cuda

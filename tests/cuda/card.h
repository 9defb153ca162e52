// Whether the tests have a card, real or emulated.
#pragma once

#include <doctest/doctest.h>

#include "cuda/cuda.h"

namespace tenon::test {

/// Says so when there is none.
inline bool has_card() {
  if (cuda::card_count() > 0) return true;
  MESSAGE("skipped: no card");
  return false;
}

}  // namespace tenon::test

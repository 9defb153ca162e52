// Divisor: a divisor that is constant during a launch, prepared for division without a divide
// instruction. Host and device share the struct; counter.cuh divides.
//
// Below 2^31 the quotient is (high(n * multiplier) + n) >> shift (Granlund and Montgomery).
#pragma once

namespace tenon::cuda {

struct Divisor {
  unsigned long long value = 1;
  unsigned multiplier = 0, shift = 0;
};

}  // namespace tenon::cuda

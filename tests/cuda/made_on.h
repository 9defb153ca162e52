// Runs a function of tensors on a device, in a precision, so that steps of whole networks can be
// compared.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <tenon/compute.h>
#include <tenon/tensor.h>

#include "../base/distance.h"

namespace tenon::test {

using Values = std::vector<std::vector<float>>;

/// The result of make() on a device, in a precision.
template <class Make>
Values made_on(const char* device, Precision precision, Make&& make) {
  set_device(device);
  set_precision(precision);
  const std::vector<Tensor> all = make();
  compute(all);
  Values values;
  values.reserve(all.size());
  for (const Tensor& t : all) values.push_back(t.to_vector<float>());
  set_precision(Precision::Fp32);
  set_device("cpu");
  return values;
}

/// Each differs by at most `bound` of its norm.
inline void check_near(const Values& got, const Values& wanted, double bound) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    CAPTURE(k);
    CHECK(distance(got[k], wanted[k]) <= bound);
  }
}

}  // namespace tenon::test

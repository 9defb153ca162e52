// Runs a test with each engine, and with and without fusion where fusion matters.
#pragma once

#include <doctest/doctest.h>
#include <tenon/compute.h>

namespace cases {

template <class F>
void with_engines(F&& test) {
  for (const char* name : {"reference", "fast"}) {
    CAPTURE(name);
    tenon::set_engine(name);
    test();
  }
  tenon::set_engine("fast");
}

template <class F>
void with_engines_and_fusion(F&& test) {
  for (const bool fused : {true, false}) {
    CAPTURE(fused);
    tenon::set_pass_enabled("fuse", fused);
    with_engines(test);
  }
  tenon::set_pass_enabled("fuse", true);
}

}  // namespace cases

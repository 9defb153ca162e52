// Examples check their results: a wrong result ends the program with exit code 1.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>

inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "this example should show: %s\n", what);
  std::exit(1);
}

inline bool near(double a, double b, double tolerance) { return std::fabs(a - b) <= tolerance; }

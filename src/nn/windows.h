// Checks of convolution and pooling options at construction instead of at the first call.
#pragma once

#include <algorithm>
#include <initializer_list>

#include <tenon/error.h>
#include <tenon/tensor.h>

#include "base/str.h"

namespace tenon::nn {

/// One setting of a window (kernel size, stride, …) for each axis, with its smallest value.
struct WindowSetting {
  const char* name;
  Ints sizes;
  std::int64_t least;
};
inline void check_window(const char* layer, std::initializer_list<WindowSetting> settings) {
  for (const WindowSetting& setting : settings)
    if (const std::int64_t size = *std::min_element(setting.sizes.begin(), setting.sizes.end());
        size < setting.least)
      throw ValueError(
          cat(layer, ": ", setting.name, " is ", size, ", must be at least ", setting.least));
}

}  // namespace tenon::nn

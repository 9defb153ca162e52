// Sizes of the windows of convolution and pooling layers: checks at construction instead of at the
// first call, and text.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>

#include <tenon/error.h>
#include <tenon/tensor.h>

#include "base/make_error.h"

namespace tenon::nn {

/// Sizes along one to three axes.
inline Ints size_list(std::int64_t size) { return {size}; }
inline Ints size_list(Pair p) { return {p.h, p.w}; }
inline Ints size_list(Triple t) { return {t.d, t.h, t.w}; }

/// Text such as "stride=3" or "stride=(3, 2, 1)".
inline std::string sizes_text(const char* name, const Ints& sizes) {
  std::string list;
  for (const std::int64_t size : sizes) list += cat(list.empty() ? "" : ", ", size);
  return cat(name, sizes.size() == 1 ? "=" : "=(", list, sizes.size() == 1 ? "" : ")");
}

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
      throw make_error<ValueError>(layer, ": ", setting.name, " is ", size, ", must be at least ",
                                   setting.least);
}

}  // namespace tenon::nn

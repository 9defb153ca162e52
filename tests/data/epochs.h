// Reads whole epochs, for the tests of loaders.
#pragma once

#include <vector>

#include <tenon/data.h>

namespace epochs {

/// The inputs of `count` epochs, from the loader's position on.
template <class T>
std::vector<T> inputs(tenon::data::Loader& loader, int count) {
  std::vector<T> out;
  for (int ends = 0; ends < count;) {
    tenon::data::Batch batch;
    if (!loader.next(batch)) {
      ++ends;
      continue;
    }
    const auto values = batch.input.to_vector<T>();
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

}  // namespace epochs

// In pieces, so that a large set needs no second copy.
#include "train/data_digest.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <vector>

#include <tenon/pictures.h>

#include "base/digest.h"

namespace tenon::train {
namespace {

void add_samples(Digester& digester, const data::Dataset& set) {
  constexpr std::int64_t kAtOnce = 256;
  const auto bytes_of = [](const Shape& shape, DType dtype) {
    return static_cast<std::size_t>(shape.numel()) * item_size(dtype);
  };
  const std::size_t input = bytes_of(set.input_shape(), set.input_dtype()),
                    target = bytes_of(set.target_shape(), set.target_dtype());
  std::string inputs(kAtOnce * input, '\0'), targets(kAtOnce * target, '\0');
  std::vector<std::int64_t> indices;
  for (std::int64_t from = 0; from < set.size(); from += kAtOnce) {
    indices.resize(static_cast<std::size_t>(std::min(kAtOnce, set.size() - from)));
    std::iota(indices.begin(), indices.end(), from);
    set.get(indices, inputs.data(), targets.data());
    digester.add(checksum(std::string_view(inputs).substr(0, indices.size() * input)));
    digester.add(checksum(std::string_view(targets).substr(0, indices.size() * target)));
  }
}

void add_names(Digester& digester, const data::Pictures& images) {
  for (std::int64_t k = 0; k < images.size(); ++k) {
    // The folder may have moved.
    digester.add(std::filesystem::path(images.name(k)).filename().string());
    digester.add(static_cast<std::uint64_t>(images.label(k)));
  }
}

}  // namespace

std::string data_digest(const data::Dataset& set) {
  Digester digester;
  if (const auto images = set.pictures(); images != nullptr)
    add_names(digester, *images);
  else if (set.in_memory() && !set.made_on_demand())
    add_samples(digester, set);
  else
    return "";
  // Of text they are its tokens, which its samples tell.
  if (set.text_unit().empty())
    for (const std::string& name : set.class_names()) digester.add(name);
  return digester.result().hex();
}

}  // namespace tenon::train

// NumPy's .npz archives: a zip file of .npy files, stored by numpy.savez() and deflated by
// savez_compressed().
#include <algorithm>
#include <memory>
#include <utility>

#include "base/str.h"
#include "io/archives/zip.h"
#include "io/file.h"
#include "io/tensors/npy.h"
#include "io/tensors/weight_table.h"

namespace tenon::io {
namespace {

constexpr std::string_view kEnding = ".npy";
constexpr std::uint64_t kValueAlignment = 64;

}  // namespace

bool is_npz(std::string_view bytes, const std::string& name) {
  if (!is_zip(bytes)) return false;
  const ZipReader zip(bytes, name);
  const std::vector<ZipEntry>& entries = zip.entries();
  return std::any_of(entries.begin(), entries.end(),
                     [](const ZipEntry& entry) { return entry.name.ends_with(kEnding); });
}

bool is_npy(std::string_view bytes) noexcept { return bytes.starts_with("\x93NUMPY"); }

WeightTable read_npz(std::string_view bytes, const std::string& name) {
  const auto zip = std::make_shared<const ZipReader>(bytes, name);
  WeightTable table;
  table.format = "npz";
  for (const ZipEntry& entry : zip->entries()) {
    if (!entry.name.ends_with(kEnding)) continue;
    const std::string where = cat(name, ": ", entry.name.substr(0, 120));
    std::string room;
    const NpyArray array =
        read_npy_header(zip->start(entry, kMostNpyHeader, room), entry.size, where);
    table.tensors.push_back({entry.name.substr(0, entry.name.size() - kEnding.size()),
                             array.dtype,
                             array.shape,
                             {},
                             table.values.size()});
    table.values.emplace_back([zip, &entry, array] {
      if (entry.deflated) return npy_values(array, zip->unpacked(entry));
      return npy_values(array, zip->stored(entry));
    });
  }
  check_weights(table, bytes.size(), name);
  return table;
}

WeightTable read_npy(std::string_view bytes, const std::string& name) {
  const NpyArray array = read_npy_header(bytes, bytes.size(), name);
  WeightTable table;
  table.format = "npy";
  table.tensors.push_back({"array", array.dtype, array.shape, {}, 0});
  table.values.emplace_back([bytes, array] { return npy_values(array, bytes); });
  return table;
}

void write_npz(const std::string& path, const TensorMap& tensors) {
  std::vector<std::string> headers;
  headers.reserve(tensors.size());
  ZipWriter zip;
  for (const auto& [name, tensor] : tensors) {
    headers.push_back(npy_header(tensor.shape(), tensor.dtype()));
    zip.add(cat(name, kEnding),
            {headers.back(),
             {static_cast<const char*>(tensor.data()),
              static_cast<std::size_t>(tensor.numel()) * item_size(tensor.dtype())}},
            kValueAlignment);
  }
  write_pieces(path, zip.finish());
}

}  // namespace tenon::io

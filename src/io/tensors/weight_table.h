// The tensor table of a weight file, before values are read; every format's reader returns one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/weights.h>

namespace tenon::io {

class MappedFile;

struct WeightTable {
  std::string format;
  std::vector<StoredTensor> tensors;  ///< in file order
  std::vector<std::function<Tensor()>>
      values;  ///< each reads one value; StoredTensor::value is the index
  Metadata metadata;
  std::vector<Unread> unread;
  std::vector<std::shared_ptr<const MappedFile>> parts;  ///< further files that contain values
};

/// Throws FormatError for two tensors of one name, and for tensors that need far more memory than
/// the file has bytes.
void check_weights(const WeightTable& table, std::uint64_t file_bytes, const std::string& name);

// The readers: tables of the bytes, which must outlive them. `name` is for messages.
WeightTable read_pt(std::string_view bytes, const std::string& name);
WeightTable table_of_safetensors(std::string_view bytes, const std::string& name);
WeightTable read_npz(std::string_view bytes, const std::string& name);
WeightTable read_npy(std::string_view bytes, const std::string& name);
WeightTable read_gguf(std::string_view bytes, const std::string& name);

/// Reads the files that an index names, in the index's folder, each with `read`.
using WeightReader = std::function<WeightTable(std::string_view, const std::string&)>;
WeightTable read_weight_parts(std::string_view index, const std::string& name,
                              const WeightReader& read);

/// Writes PyTorch's zip format. The tensors are defined.
void write_pt(const std::string& path, const TensorMap& tensors);
/// Writes numpy.savez()'s format; the same.
void write_npz(const std::string& path, const TensorMap& tensors);

/// Whether the bytes start like a file of torch.save() before PyTorch 1.6.
bool is_legacy_pt(std::string_view bytes) noexcept;
bool is_npy(std::string_view bytes) noexcept;
bool is_gguf(std::string_view bytes) noexcept;
/// Whether the bytes are a zip archive of arrays. Throws like ZipReader.
bool is_npz(std::string_view bytes, const std::string& name);

}  // namespace tenon::io

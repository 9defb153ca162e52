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
  std::vector<StoredTensor> tensors;            ///< in the order of the file
  std::vector<std::function<Tensor()>> values;  ///< read one; StoredTensor::value is its place
  Metadata metadata;
  std::vector<Unread> unread;
  std::vector<std::shared_ptr<const MappedFile>> parts;  ///< where values lie in other files too
};

/// Refuses, with FormatError, two tensors of one name, and tensors that take absurdly more memory
/// than the file has bytes.
void check_weights(const WeightTable& table, std::uint64_t file_bytes, const std::string& name);

// The readers: tables of the bytes, which must outlive them. `name` is for messages.
WeightTable read_pt(std::string_view bytes, const std::string& name);
WeightTable table_of_safetensors(std::string_view bytes, const std::string& name);
WeightTable read_npz(std::string_view bytes, const std::string& name);
WeightTable read_npy(std::string_view bytes, const std::string& name);
WeightTable read_gguf(std::string_view bytes, const std::string& name);

/// Reads what an index names, in files beside it, each by `read`.
using WeightReader = std::function<WeightTable(std::string_view, const std::string&)>;
WeightTable read_weight_parts(std::string_view index, const std::string& name,
                              const WeightReader& read);

/// Writes PyTorch's zip format. The tensors are defined.
void write_pt(const std::string& path, const TensorMap& tensors);
/// Writes numpy.savez()'s format; the same.
void write_npz(const std::string& path, const TensorMap& tensors);

/// True for what starts as a file of torch.save() of before 1.6 does.
bool is_legacy_pt(std::string_view bytes) noexcept;
bool is_npy(std::string_view bytes) noexcept;
bool is_gguf(std::string_view bytes) noexcept;
/// True for a zip archive of arrays. Throws as ZipReader.
bool is_npz(std::string_view bytes, const std::string& name);

}  // namespace tenon::io

// Weights of others: files of PyTorch, NumPy and Hugging Face as names and tensors.
//
// A file is mapped into memory and its table read; values are read when they are asked for. Nothing
// in a file is run: of a .pt file's pickle, only what tensors and their names are made of is taken,
// and any other name that it would import is refused with that name. The rules of <tenon/io.h> for
// untrusted bytes hold.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <tenon/io.h>

namespace tenon::io {

/// A tensor of a file.
struct StoredTensor {
  std::string name;
  DType dtype = DType::Float32;  ///< that it has once it is read
  Shape shape;
  std::string stored;     ///< the file's own element type where Tenon's is another, else empty
  std::size_t value = 0;  ///< tensors of one value (tied ones) have one number
};

/// An open file of weights: .safetensors, or .pt and .pth of torch.save() (zip or the older form),
/// told by its content. Copies are handles of one open file.
class TENON_API WeightFile {
 public:
  /// Maps the file and reads its table, no values. Throws IoError; FormatError for what is damaged,
  /// foreign or absurd; NotSupported for element types that Tenon lacks, named.
  explicit WeightFile(const std::string& path);

  const std::string& path() const noexcept;
  /// "safetensors", "pt" or "pt (legacy)".
  const std::string& format() const noexcept;
  /// In the order of the file. Names of nested dictionaries are joined by dots.
  const std::vector<StoredTensor>& tensors() const noexcept;
  /// safetensors: as written; .pt: the numbers and texts that stand among the tensors.
  const Metadata& metadata() const noexcept;
  /// The value of tensors()[index], on the CPU. Throws FormatError when its bytes are damaged.
  Tensor read(std::size_t index) const;
  /// All of them. Tied tensors are one Tensor under several names.
  TensorMap read_all() const;

 private:
  struct Opened;
  std::shared_ptr<const Opened> opened_;
};

/// WeightFile(path).read_all().
TENON_API TensorMap load_weights(const std::string& path);

/// Writes tensors atomically, in the format that the path's ending names: .safetensors; .pt, .pth
/// and .bin, which torch.load(path, weights_only=True) gives back as a dictionary of tensors. One
/// Tensor under several names is written once into a .pt file. Throws ValueError for another ending
/// or an undefined tensor. Evaluates pending tensors.
TENON_API void save_weights(const std::string& path, const TensorMap& tensors);

}  // namespace tenon::io

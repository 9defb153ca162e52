// Weights from other frameworks: files of PyTorch, NumPy, Hugging Face and llama.cpp as named
// tensors.
//
// A file is mapped into memory and its index is read. Values are read on request. No code in a file
// is run: of a .pt file's pickle the reader interprets only what describes tensors and their names.
// Objects of other classes are reported by name and never created. The rules of <tenon/io.h> for
// untrusted bytes apply.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <tenon/io.h>
#include <tenon/notes.h>

namespace tenon::io {

/// A tensor in a file of weights.
struct StoredTensor {
  std::string name;              ///< name in the file
  DType dtype = DType::Float32;  ///< data type after reading
  Shape shape;                   ///< shape
  std::string stored;            ///< the file's data type if it differs from `dtype`, else ""
  std::size_t value = 0;         ///< tied tensors, which share one value, have the same number here
};

/// An entry of a file that is not read: an object of some class, or a tensor of a data type that
/// Tenon lacks.
struct Unread {
  std::string name;  ///< name in the file
  std::string what;  ///< "an object of 'argparse.Namespace'", "a tensor of complex64 [3, 4]"
};

/// An open file of weights. The format is detected from the contents:
/// - .safetensors, or the index (.json) of several files beside it
/// - .pt and .pth of torch.save(), zip or the older format
/// - NumPy's .npz and .npy
/// - .gguf; blocks of q8_0 and q4_0 are read as float32
///
/// Copies are handles of the same open file.
class TENON_API WeightFile {
 public:
  /// Maps the file and reads its index, no values. For a folder it opens the file that Hugging
  /// Face's libraries read: model.safetensors, model.safetensors.index.json, pytorch_model.bin or
  /// its index. Throws IoError; FormatError for a damaged file, another format or impossible sizes;
  /// NotSupported for a file without a tensor that can be read.
  explicit WeightFile(const std::string& path);

  /// The path that was opened.
  const std::string& path() const noexcept;
  /// "safetensors", "safetensors in parts", "pt", "pt (legacy)", "npz", "npy" or "gguf".
  const std::string& format() const noexcept;
  /// The tensors, in the order of the file. Names of nested dictionaries are joined by dots. The
  /// tensor of a .npy file is named "array".
  const std::vector<StoredTensor>& tensors() const noexcept;
  /// Of safetensors: the file's metadata. Of .pt and .gguf: numbers and texts beside the tensors.
  const Metadata& metadata() const noexcept;
  /// Entries of the file that are not read. A network that needs one of them lacks it.
  const std::vector<Unread>& unread() const noexcept;
  /// Notes, with counts, on entries that are left out (unread()) or converted: data types that
  /// Tenon lacks and whose values another type represents exactly (float8, int16, uint16, uint32).
  const Notes& notes() const noexcept;
  /// Reads tensors()[index] to the CPU. Throws FormatError if its bytes are damaged.
  Tensor read(std::size_t index) const;
  /// Reads all tensors. Tied tensors are one Tensor under several names.
  TensorMap read_all() const;

 private:
  struct Opened;
  std::shared_ptr<const Opened> opened_;
};

/// WeightFile(path).read_all().
TENON_API TensorMap load_weights(const std::string& path);

/// Writes tensors atomically. The extension of the path chooses the format:
/// - .safetensors, the only format that stores `metadata`
/// - .pt, .pth and .bin: torch.load(path, weights_only=True) gives a dictionary of tensors. One
///   Tensor under several names is written once.
/// - .npz
///
/// Evaluates pending tensors. Throws ValueError for another extension or an undefined tensor,
/// DTypeError for bfloat16 in .npz.
TENON_API void save_weights(const std::string& path, const TensorMap& tensors,
                            const Metadata& metadata = {});

}  // namespace tenon::io

// Weights of others: files of PyTorch, NumPy, Hugging Face and llama.cpp as names and tensors.
//
// A file is mapped into memory and its table read; values are read when they are asked for. Nothing
// in a file is run: of a .pt file's pickle, only what tensors and their names are made of is taken,
// and objects of other classes are named, never made. The rules of <tenon/io.h> for untrusted bytes
// hold.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <tenon/io.h>
#include <tenon/notes.h>

namespace tenon::io {

/// A tensor of a file.
struct StoredTensor {
  std::string name;
  DType dtype = DType::Float32;  ///< that it has once it is read
  Shape shape;
  std::string stored;     ///< the file's own element type where Tenon's is another, else empty
  std::size_t value = 0;  ///< tensors of one value (tied ones) have one number
};

/// A value of a file that is not read: an object of some class, which is never made, or a tensor of
/// an element type that Tenon lacks.
struct Unread {
  std::string name;
  std::string what;  ///< "an object of 'argparse.Namespace'", "a tensor of complex64 [3, 4]"
};

/// An open file of weights: .safetensors, or the index (.json) of several that lie beside it; .pt
/// and .pth of torch.save() (zip or the older form); NumPy's .npz and .npy; .gguf, whose blocks
/// q8_0 and q4_0 are read as float32. All are told by their content. Copies are handles of one open
/// file.
class TENON_API WeightFile {
 public:
  /// Maps the file and reads its table, no values. Of a folder the file that Hugging Face's
  /// libraries read: model.safetensors, model.safetensors.index.json, pytorch_model.bin or its
  /// index. Throws IoError; FormatError for what is damaged, foreign or absurd; NotSupported for a
  /// file without a tensor that can be read.
  explicit WeightFile(const std::string& path);

  const std::string& path() const noexcept;
  /// "safetensors", "safetensors in parts", "pt", "pt (legacy)", "npz", "npy" or "gguf".
  const std::string& format() const noexcept;
  /// In the order of the file. Names of nested dictionaries are joined by dots; the one of a .npy
  /// file is "array".
  const std::vector<StoredTensor>& tensors() const noexcept;
  /// safetensors: as written; .pt and .gguf: the numbers and texts that stand beside the tensors.
  const Metadata& metadata() const noexcept;
  /// What the file holds beside them. A network that wants one of these lacks it.
  const std::vector<Unread>& unread() const noexcept;
  /// What reading the file leaves out and converts, with counts: element types that Tenon lacks and
  /// whose values another type holds exactly (float8, int16, uint16, uint32), and unread().
  const Notes& notes() const noexcept;
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

/// Writes tensors atomically, in the format that the path's ending names: .safetensors, which alone
/// holds metadata; .pt, .pth and .bin, which torch.load(path, weights_only=True) gives back as a
/// dictionary of tensors; .npz. One Tensor under several names is written once into a .pt file.
/// Throws ValueError for another ending or an undefined tensor, DTypeError for bfloat16 in .npz.
/// Evaluates pending tensors.
TENON_API void save_weights(const std::string& path, const TensorMap& tensors,
                            const Metadata& metadata = {});

/// What of a file a network takes.
struct TENON_API WeightFit {
  std::string family;             ///< whose names the file has: "Hugging Face GPT-2"; "": nobody's
  std::string normalize;          ///< how these scale images, as the setting says it; "": unknown
  std::vector<std::string> done;  ///< in words: "148 renamed, as 'wte.weight' to 'transformer…'"
  TensorMap tensors;              ///< by the network's names, in its shapes
  /// Names of the network and of the file, and sentences with both shapes. Counters of batches,
  /// which older files lack, are not missing.
  std::vector<std::string> missing, foreign, misshapen;
  std::vector<std::string> unread;  ///< of `missing`, what the file has in their place
  /// Why Tenon has no network of `family`, as the end of a sentence; "": it has one, or none is
  /// known.
  std::string unsupported;

  /// "missing: 'fc.bias'; of another shape: …"; "" when there are none of either.
  std::string differences() const;
};

/// Finds the tensors of a network, given by name, in a file. What frameworks put in front of all
/// names ("module.", "state_dict.") or into paths ("_orig_mod.", "_fsdp_wrapped_module.") is taken
/// off, weights that a weight norm keeps in two tensors are put together, and the names of a family
/// that is known become the network's: torchvision's and Hugging Face's networks, and GPT-2 with
/// nn.Linear, whose matrices are transposed. Throws ValueError for two tensors of one place, and
/// for tied tensors that differ; NotSupported for a weight of another parametrization.
TENON_API WeightFit fit_weights(const WeightFile& file, const TensorMap& wanted);

/// The family alone; "" when the names are nobody's that is known.
TENON_API std::string weight_family(const WeightFile& file);

}  // namespace tenon::io

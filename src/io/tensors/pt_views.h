// PyTorch's tensor storage: typed byte ranges (storages), and views into them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <tenon/tensor.h>

#include "io/archives/zip.h"
#include "io/tensors/foreign_types.h"

namespace tenon::io {

/// An element type by PyTorch's names.
struct TorchType {
  std::string_view storage;  ///< name of the storage, behind "torch."
  std::string_view name;     ///< as in torch.float32; empty: the storage has no element type
  DType dtype;               ///< that it is read as
  std::uint64_t item;        ///< bytes in the file
  Conversion conversion = Conversion::None;
  bool readable() const { return conversion != Conversion::Unreadable; }
};

/// By "FloatStorage", "cuda.FloatStorage" or "float32"; nullptr for an unknown name.
const TorchType* torch_type(std::string_view name) noexcept;
/// The one that a tensor is written as.
const TorchType& torch_type(DType dtype) noexcept;

struct TorchStorage {
  const TorchType* type = nullptr;  ///< null: unknown, and no tensor of it is read
  std::uint64_t items = 0;
  std::string key;
  std::string unknown{};  ///< the element type's name where `type` is null
  bool swapped = false;   ///< The file's byte order is not the machine's.
  /// Where the bytes are, once that is known: here, or in an entry of an archive, whose checksum is
  /// compared when it is first read.
  std::string_view bytes;
  const ZipEntry* entry = nullptr;
  std::shared_ptr<const ZipReader> archive;
  mutable std::atomic<bool> checked{false};

  std::string_view read() const;
};
using TorchStorages = std::map<std::string, std::shared_ptr<TorchStorage>>;

/// Elements of a storage, counted in elements of `type`. Whoever makes one has checked that all of
/// them lie in it.
struct TorchView {
  std::shared_ptr<const TorchStorage> storage;
  const TorchType* type = nullptr;
  std::uint64_t offset = 0;
  int rank = 0;
  std::uint64_t sizes[kMaxRank] = {}, strides[kMaxRank] = {};

  Shape shape() const;
  bool contiguous() const noexcept;
};

/// The value of a view whose type is readable, converted where it has to be. Throws FormatError
/// when the bytes are damaged.
Tensor read_view(const TorchView& view);

}  // namespace tenon::io

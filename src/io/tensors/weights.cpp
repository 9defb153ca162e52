// Opens weight files of all formats: detects the format by the content, reads the table of tensors,
// checks it, and reads values on request. A folder is resolved to the file that Hugging Face's
// libraries would read.
#include <tenon/weights.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/archives/zip.h"
#include "io/byte_order.h"
#include "io/file.h"
#include "io/lfs.h"
#include "io/tensors/safetensors.h"
#include "io/tensors/weight_table.h"

namespace tenon::io {
namespace {

// Limit of memory relative to the file's size: views may repeat elements, compressed values grow.
constexpr std::uint64_t kMostGrowth = 16, kMostBeside = std::uint64_t{16} << 20;

// Reads a single file, not an index.
WeightTable read_single(std::string_view bytes, const std::string& path) {
  if (is_npz(bytes, path)) return read_npz(bytes, path);
  if (is_zip(bytes) || is_legacy_pt(bytes)) return read_pt(bytes, path);
  if (is_gguf(bytes)) return read_gguf(bytes, path);
  if (is_npy(bytes)) return read_npy(bytes, path);
  if (bytes.size() >= 9 && bytes[8] == '{') return table_of_safetensors(bytes, path);
  refuse_lfs_pointer(bytes, path);
  throw make_error<FormatError>(
      FileName{path},
      ": unknown format of weight file: supported are .safetensors and its index, "
      ".pt, .pth, .npz, .npy and .gguf");
}

// Tells an index from safetensors, whose header length may begin with the byte '{', too.
bool is_index(std::string_view bytes) {
  if (!bytes.starts_with('{')) return false;
  return bytes.size() < 9 || read_little<std::uint64_t>(bytes.data()) > kMaxSafeTensorsHeader;
}

WeightTable read_table(std::string_view bytes, const std::string& path) {
  return is_index(bytes) ? read_weight_parts(bytes, path, read_single) : read_single(bytes, path);
}

// For a folder: the file that Hugging Face's libraries would read. For a file: the file.
std::string file_of_weights(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  static constexpr const char* kNames[] = {"model.safetensors", "model.safetensors.index.json",
                                           "pytorch_model.bin", "pytorch_model.bin.index.json"};
  const std::string folder = path.ends_with('/') ? path : cat(path, "/");
  std::string all;
  for (const char* name : kNames) {
    if (is_there(folder + name)) return folder + name;
    all += cat(all.empty() ? "" : ", ", name);
  }
  throw make_error<FormatError>(FileName{path},
                                ": the folder contains no weights: expected one of ", all);
}

// One note for each converted type, and one for all entries that are not read.
Notes notes_of(const WeightTable& table, const std::string& path) {
  std::map<std::string, std::pair<std::int64_t, const StoredTensor*>> kinds;
  for (const StoredTensor& tensor : table.tensors) {
    if (tensor.stored.empty()) continue;
    auto& [count, first] = kinds[tensor.stored];
    if (count++ == 0) first = &tensor;
  }
  Notes notes;
  for (const auto& [stored, kind] : kinds)
    notes.push_back({cat(kind.first, " of ", stored, " read as ", kind.second->dtype,
                         ", for instance '", kind.second->name.substr(0, 120), "'"),
                     kind.first, path});
  if (!table.unread.empty()) {
    const Unread& first = table.unread.front();
    const std::size_t more = table.unread.size() - 1;
    notes.push_back({cat(table.unread.size(), " not read: '", first.name.substr(0, 120), "', ",
                         first.what, more > 0 ? cat(", and ", more, " more") : ""),
                     static_cast<std::int64_t>(table.unread.size()), path});
  }
  return notes;
}

bool ends_with_any(const std::string& path, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

}  // namespace

void check_weights(const WeightTable& table, std::uint64_t file_bytes, const std::string& name) {
  const std::uint64_t most = file_bytes * kMostGrowth + kMostBeside;
  std::uint64_t total = 0;
  std::vector<bool> counted(table.values.size());
  std::unordered_set<std::string_view> names;
  for (const StoredTensor& tensor : table.tensors) {
    if (!names.insert(tensor.name).second)
      throw make_error<FormatError>(FileName{name}, ": two tensors are named '",
                                    tensor.name.substr(0, 120), "': rename one of them");
    if (counted[tensor.value]) continue;
    counted[tensor.value] = true;
    const auto items = static_cast<std::uint64_t>(tensor.shape.numel());
    const std::uint64_t item = item_size(tensor.dtype);
    if (items > (most - total) / item)
      throw make_error<FormatError>(
          FileName{name}, ": tensor '", tensor.name.substr(0, 120), "' of shape ", tensor.shape,
          " and those before it take more than ", most, " bytes, too much for a file of ",
          file_bytes, " bytes: the file is damaged");
    total += items * item;
  }
}

struct WeightFile::Opened {
  explicit Opened(const std::string& of)
      : path(file_of_weights(of)),
        file(path),
        table(read_table(file.bytes(), path)),
        notes(notes_of(table, path)) {}
  std::string path;
  MappedFile file;
  WeightTable table;
  Notes notes;
};

WeightFile::WeightFile(const std::string& path) : opened_(std::make_shared<const Opened>(path)) {
  opened_->file.require_whole();
}

const std::string& WeightFile::path() const noexcept { return opened_->path; }
const std::string& WeightFile::format() const noexcept { return opened_->table.format; }
const std::vector<StoredTensor>& WeightFile::tensors() const noexcept {
  return opened_->table.tensors;
}
const Metadata& WeightFile::metadata() const noexcept { return opened_->table.metadata; }

const std::vector<Unread>& WeightFile::unread() const noexcept { return opened_->table.unread; }
const Notes& WeightFile::notes() const noexcept { return opened_->notes; }

Tensor WeightFile::read(std::size_t index) const {
  if (index >= tensors().size())
    throw make_error<ValueError>("WeightFile::read: ", FileName{path()}, " has ", tensors().size(),
                                 " tensors; index ", index, " is out of range");
  try {
    Tensor value = opened_->table.values[tensors()[index].value]();
    opened_->file.require_whole();
    return value;
  } catch (const FormatError&) {  // the file was truncated: report that instead
    opened_->file.require_whole();
    throw;
  }
}

TensorMap WeightFile::read_all() const {
  std::vector<Tensor> values(opened_->table.values.size());
  TensorMap out;
  for (std::size_t place = 0; place < tensors().size(); ++place) {
    const StoredTensor& tensor = tensors()[place];
    Tensor& value = values[tensor.value];
    if (!value.defined()) value = read(place);
    out.emplace(tensor.name, value);
  }
  return out;
}

TensorMap load_weights(const std::string& path) { return WeightFile(path).read_all(); }

void save_weights(const std::string& path, const TensorMap& tensors, const Metadata& metadata) {
  for (const auto& [name, tensor] : tensors)
    if (!tensor.defined())
      throw make_error<ValueError>("save_weights: ", FileName{path}, ": tensor '", name,
                                   "' is undefined");
  if (path.ends_with(".safetensors")) return save_safetensors(path, tensors, metadata);
  if (ends_with_any(path, {".pt", ".pth", ".bin"})) return write_pt(path, tensors);
  if (path.ends_with(".npz")) return write_npz(path, tensors);
  throw make_error<ValueError>(
      "save_weights: ", FileName{path},
      ": unknown file name extension: use .safetensors, .pt, .pth, .bin or .npz");
}

}  // namespace tenon::io

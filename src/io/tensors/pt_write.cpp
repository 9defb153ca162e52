// Writes PyTorch's zip format: data.pkl, a pickle of protocol 2 that torch.load(weights_only=True)
// accepts, and one entry for each storage, aligned as torch.save() does.
#include <bit>
#include <cstring>
#include <unordered_map>

#include <tenon/error.h>

#include "base/str.h"
#include "io/archives/zip.h"
#include "io/byte_order.h"
#include "io/file.h"
#include "io/tensors/pt_views.h"
#include "io/tensors/weight_table.h"

namespace tenon::io {
namespace {

constexpr std::string_view kRoot = "archive/";
constexpr std::uint64_t kStorageAlignment = 64;

// Writes the pickle instructions that a dictionary of tensors needs.
class PickleText {
 public:
  void raw(std::string_view bytes) { out_ += bytes; }
  void global(std::string_view module, std::string_view name) {
    out_ += cat("c", module, "\n", name, "\n");
  }
  void text(std::string_view words) {
    out_ += 'X';
    little(static_cast<std::uint32_t>(words.size()));
    out_ += words;
  }
  void integer(std::int64_t value) {
    if (value == static_cast<std::int32_t>(value)) {
      out_ += 'J';
      little(static_cast<std::int32_t>(value));
    } else {
      out_ += "\x8a\x08";
      little(value);
    }
  }
  void sizes(const std::int64_t* values, int count) {
    out_ += '(';
    for (int i = 0; i < count; ++i) integer(values[i]);
    out_ += 't';
  }
  std::string take() { return std::move(out_); }

 private:
  template <class T>
  void little(T value) {
    if constexpr (std::endian::native == std::endian::big) swap_bytes(&value, sizeof value, 1);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof value);
  }
  std::string out_;
};

// Writes torch._utils._rebuild_tensor_v2(storage, 0, sizes, strides, False, OrderedDict()).
void put_tensor(PickleText& out, const Tensor& tensor, std::size_t storage) {
  out.global("torch._utils", "_rebuild_tensor_v2");
  out.raw("((");
  out.text("storage");
  out.global("torch", torch_type(tensor.dtype()).storage);
  out.text(cat(storage));
  out.text("cpu");
  out.integer(tensor.numel());
  out.raw("tQ");
  out.integer(0);
  const Shape& shape = tensor.shape();
  std::int64_t strides[kMaxRank] = {};
  std::int64_t step = 1;
  for (int i = shape.rank(); i-- > 0; step *= std::max<std::int64_t>(shape[i], 1))
    strides[i] = step;
  out.sizes(shape.begin(), shape.rank());
  out.sizes(strides, shape.rank());
  out.raw("\x89");
  out.global("collections", "OrderedDict");
  out.raw(")RtR");
}

}  // namespace

void write_pt(const std::string& path, const TensorMap& tensors) {
  PickleText pickle;
  pickle.raw("\x80\x02}(");
  std::unordered_map<const Node*, std::size_t> storages;
  std::vector<std::string_view> values;
  for (const auto& [name, tensor] : tensors) {
    const auto [storage, is_new] = storages.try_emplace(tensor.node(), values.size());
    if (is_new)
      values.emplace_back(static_cast<const char*>(tensor.data()),
                          static_cast<std::size_t>(tensor.numel()) * item_size(tensor.dtype()));
    pickle.text(name);
    put_tensor(pickle, tensor, storage->second);
  }
  pickle.raw("u.");
  const std::string dictionary = pickle.take();
  ZipWriter zip;
  zip.add(cat(kRoot, "data.pkl"), {dictionary});
  zip.add(cat(kRoot, "byteorder"), {std::endian::native == std::endian::little ? "little" : "big"});
  for (std::size_t i = 0; i < values.size(); ++i)
    zip.add(cat(kRoot, "data/", i), {values[i]}, kStorageAlignment);
  zip.add(cat(kRoot, "version"), {"3\n"});
  write_pieces(path, zip.finish());
}

}  // namespace tenon::io

// Reads and writes .safetensors files. At most one tensor's bytes are in memory in addition to the
// tensors, never the whole file.
#include "io/tensors/safetensors.h"

#include <algorithm>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/sort.h"
#include "base/str.h"
#include "io/byte_order.h"
#include "io/file.h"
#include "io/lfs.h"
#include "io/tensors/weight_table.h"

namespace tenon::io {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors stores little-endian values; add swaps for this machine");

std::uint64_t header_length(std::string_view prefix, std::uint64_t file_size,
                            const std::string& name) {
  if (file_size < 8 || prefix.size() < 8)
    throw make_error<FormatError>(FileName{name},
                                  ": not a safetensors file: it has fewer than 8 bytes");
  const auto length = read_little<std::uint64_t>(prefix.data());
  if (length > kMaxSafeTensorsHeader || length > file_size - 8)
    throw make_error<FormatError>(FileName{name}, ": the first 8 bytes say that the header has ",
                                  length, " bytes, but the file has ", file_size - 8,
                                  " after them: not a safetensors file, or a truncated one");
  return length;
}

// Verifies a tensor's checksum, if the file has one.
void require_whole(std::string_view bytes, const SafeTensorsEntry& e, const std::string& file) {
  if (e.crc.empty()) return;
  if (const std::string crc = crc_text(bytes); crc != e.crc)
    throw make_error<FormatError>(FileName{file}, " is damaged: the checksum of tensor '", e.name,
                                  "' is ", crc, ", expected ", e.crc,
                                  ": use another copy of the file (or, if a program ",
                                  "changed it intentionally, remove its metadata '", kCrcKey, "')");
}

Tensor make_tensor(char* bytes, const SafeTensorsEntry& e) {
  if (e.conversion != Conversion::None) {
    const std::string own =
        converted(e.conversion, {bytes, static_cast<std::size_t>(e.end - e.begin)});
    return Tensor::from_data(own.data(), e.shape, e.dtype, Device{});
  }
  if (e.dtype == DType::Bool) normalize_bools(bytes, static_cast<std::size_t>(e.end - e.begin));
  return Tensor::from_data(bytes, e.shape, e.dtype, Device{});
}

Tensor read_entry(std::string_view values, const SafeTensorsEntry& e, const std::string& file) {
  const std::string_view bytes =
      values.substr(static_cast<std::size_t>(e.begin), static_cast<std::size_t>(e.end - e.begin));
  require_whole(bytes, e, file);
  if (e.dtype != DType::Bool && e.conversion == Conversion::None)
    return Tensor::from_data(bytes.data(), e.shape, e.dtype, Device{});
  std::string own(bytes);
  return make_tensor(own.data(), e);
}

struct OpenedHeader {
  SafeTensorsHeader header;
  std::uint64_t data = 0;  // offset of the values
};

OpenedHeader open_header(const InputFile& file) {
  char prefix[64] = {};
  const std::uint64_t size = file.size(), begun = std::min<std::uint64_t>(size, sizeof prefix);
  file.read_at(0, prefix, begun);
  refuse_lfs_pointer({prefix, static_cast<std::size_t>(begun)}, file.path());
  const std::uint64_t length = header_length({prefix, 8}, size, file.path());
  std::string json(static_cast<std::size_t>(length), '\0');
  file.read_at(8, json.data(), length);
  return {parse_safetensors_header(json, size - 8 - length, file.path()), 8 + length};
}

struct ParsedFile {
  SafeTensorsHeader header;
  std::string_view values;  // the bytes after the header
};

ParsedFile split_file(std::string_view bytes, const std::string& name) {
  refuse_lfs_pointer(bytes, name);
  const auto length =
      static_cast<std::size_t>(header_length(bytes.substr(0, 8), bytes.size(), name));
  const std::string_view values = bytes.substr(8 + length);
  return {parse_safetensors_header(bytes.substr(8, length), values.size(), name), values};
}

}  // namespace

SafeTensors parse_safetensors(std::string_view bytes, const std::string& name) {
  auto [header, values] = split_file(bytes, name);
  require_readable(header, name);
  SafeTensors result;
  for (const SafeTensorsEntry& e : header.entries)
    result.tensors.emplace(e.name, read_entry(values, e, name));
  result.metadata = std::move(header.metadata);
  return result;
}

WeightTable table_of_safetensors(std::string_view bytes, const std::string& name) {
  ParsedFile file = split_file(bytes, name);
  SafeTensorsHeader& header = file.header;
  const std::string_view values = file.values;
  if (std::all_of(header.entries.begin(), header.entries.end(),
                  [](const SafeTensorsEntry& e) { return e.conversion == Conversion::Unreadable; }))
    require_readable(header, name);
  WeightTable table;
  table.format = "safetensors";
  table.metadata = std::move(header.metadata);
  const auto shared = std::make_shared<const std::string>(name);
  table.tensors.reserve(header.entries.size());
  table.values.reserve(header.entries.size());
  for (const SafeTensorsEntry& e : header.entries) {
    if (e.conversion == Conversion::Unreadable) {
      table.unread.push_back({e.name, cat("a tensor of ", e.stored, " ", e.shape)});
      continue;
    }
    table.tensors.push_back({e.name, e.dtype, e.shape, e.stored, table.values.size()});
    table.values.emplace_back([values, e, name = shared] { return read_entry(values, e, *name); });
  }
  return table;
}

SafeTensors load_safetensors(const std::string& path) {
  const InputFile file(path);
  OpenedHeader opened = open_header(file);
  require_readable(opened.header, path);
  SafeTensors result;
  std::string scratch;
  for (const SafeTensorsEntry& e : opened.header.entries) {
    const std::uint64_t bytes = e.end - e.begin;
    if (scratch.size() < bytes) scratch.resize(static_cast<std::size_t>(bytes));
    file.read_at(opened.data + e.begin, scratch.data(), bytes);
    require_whole(std::string_view(scratch).substr(0, static_cast<std::size_t>(bytes)), e, path);
    result.tensors.emplace(e.name, make_tensor(scratch.data(), e));
  }
  result.metadata = std::move(opened.header.metadata);
  return result;
}

SafeTensorsInfo inspect_safetensors(const std::string& path) {
  const InputFile file(path);
  OpenedHeader opened = open_header(file);
  require_readable(opened.header, path);
  SafeTensorsInfo info;
  for (const SafeTensorsEntry& e : opened.header.entries) info.tensors[e.name] = {e.dtype, e.shape};
  info.metadata = std::move(opened.header.metadata);
  return info;
}

namespace {

void save(const std::string& path, const TensorMap& tensors, const Metadata& metadata,
          bool checked) {
  // Types with larger elements first, like the reference writer, so every tensor is aligned to its
  // element type.
  std::vector<const TensorMap::value_type*> order;
  for (const auto& item : tensors) {
    if (!item.second.defined())
      throw ValueError(cat("save_safetensors: tensor '", item.first, "' is undefined"),
                       {.file = path});
    order.push_back(&item);
  }
  sort_stably(order, [](const auto* a, const auto* b) {
    return item_size(a->second.dtype()) > item_size(b->second.dtype());
  });
  SafeTensorsHeader header;
  header.metadata = metadata;
  std::vector<std::string_view> pieces(1);
  std::uint64_t at = 0;
  for (const auto* item : order) {
    const Tensor& tensor = item->second;
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(tensor.numel()) * item_size(tensor.dtype());
    header.entries.push_back({item->first, tensor.dtype(), tensor.shape(), at, at + bytes, {}});
    pieces.emplace_back(static_cast<const char*>(tensor.data()), static_cast<std::size_t>(bytes));
    if (checked) header.entries.back().crc = crc_text(pieces.back());
    at += bytes;
  }
  if (checked) add_checksums(header);
  const std::string head = safetensors_header(header);
  pieces[0] = head;
  write_pieces(path, pieces);
}

}  // namespace

void save_safetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata) {
  save(path, tensors, metadata, false);
}

void save_checked_safetensors(const std::string& path, const TensorMap& tensors,
                              const Metadata& metadata) {
  save(path, tensors, metadata, true);
}

}  // namespace tenon::io

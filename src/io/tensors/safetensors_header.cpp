// The JSON header of safetensors, read and written. A SAX handler reads it, so that refused parts
// allocate nothing and repeated keys are detected.

#include <zlib.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/sizes.h"
#include "io/tensors/safetensors.h"
#include "io/text/json.h"

namespace tenon::io {
namespace {

struct TypeName {
  const char* text;
  DType dtype;
};
constexpr TypeName kTypeNames[] = {
    {"BOOL", DType::Bool},     {"U8", DType::UInt8},    {"I8", DType::Int8},
    {"I32", DType::Int32},     {"I64", DType::Int64},   {"F16", DType::Float16},
    {"BF16", DType::BFloat16}, {"F32", DType::Float32}, {"F64", DType::Float64}};

// Element types that Tenon lacks, with their sizes. For types outside this table the size is
// unknown.
struct ForeignName {
  const char *text, *name;
  DType dtype;
  Conversion conversion;
  std::uint64_t item;
};
constexpr ForeignName kForeignNames[] = {
    {"I16", "int16", DType::Int32, Conversion::Int16, 2},
    {"U16", "uint16", DType::Int32, Conversion::UInt16, 2},
    {"U32", "uint32", DType::Int64, Conversion::UInt32, 4},
    {"F8_E4M3", "float8_e4m3fn", DType::Float32, Conversion::E4M3FN, 1},
    {"F8_E5M2", "float8_e5m2", DType::Float32, Conversion::E5M2, 1},
    {"F8_E4M3FNUZ", "float8_e4m3fnuz", DType::Float32, Conversion::E4M3FNUZ, 1},
    {"F8_E5M2FNUZ", "float8_e5m2fnuz", DType::Float32, Conversion::E5M2FNUZ, 1},
    {"F8_E8M0", "float8_e8m0fnu", DType::Float32, Conversion::E8M0FNU, 1},
    {"U64", "uint64", DType::Int64, Conversion::Unreadable, 8},
    {"C64", "complex64", DType::Float32, Conversion::Unreadable, 8}};

// Key of the metadata, in the place of a tensor's name.
constexpr char kMetadata[] = "__metadata__";

const char* type_name(DType dtype) {
  for (const TypeName& row : kTypeNames)
    if (row.dtype == dtype) return row.text;
  throw InternalError("safetensors: an element type without a name");
}

// Accepts {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …,
// "__metadata__": {"key": "text"}}.
class HeaderHandler final : public JsonSax {
 public:
  HeaderHandler(SafeTensorsHeader& header, const std::string& name)
      : header_(header), name_(name) {}

  bool start_object() override {
    if (level_ == 0) {
      level_ = 1;
    } else if (level_ == 1) {
      level_ = 2;
      in_metadata_ = key_ == kMetadata;
      fields_ = 0;
      sizes_.clear();
      offsets_.clear();
      if (!in_metadata_) {
        header_.entries.emplace_back();
        entry().name = key_;
      }
    } else {
      unexpected("an object");
    }
    return true;
  }
  bool end_object() override {
    if (level_ == 2 && !in_metadata_) finish_entry();
    --level_;
    return true;
  }
  bool key(std::string& text) override {
    key_ = text;
    if (level_ == 1 && !names_.insert(key_).second) fail(cat("'", shown(key_), "' appears twice"));
    if (level_ == 2 && in_metadata_ && header_.metadata.contains(key_))
      fail(cat("metadata '", shown(key_), "' appears twice"));
    if (level_ == 2 && !in_metadata_) {
      const unsigned bit = key_ == "dtype"          ? 1u
                           : key_ == "shape"        ? 2u
                           : key_ == "data_offsets" ? 4u
                                                    : 0u;
      if (bit == 0)
        fail(cat("tensor '", shown(entry().name), "' has an unknown field '", shown(key_), "'"));
      if ((fields_ & bit) != 0)
        fail(cat("tensor '", shown(entry().name), "' has '", key_, "' twice"));
      fields_ |= bit;
    }
    return true;
  }
  bool string(std::string& text) override {
    if (level_ != 2 || array_) unexpected("a string");
    if (in_metadata_) {
      header_.metadata[key_] = text;
    } else if (key_ == "dtype") {
      set_type(text);
    } else {
      unexpected("a string");
    }
    return true;
  }
  bool start_array() override {
    if (level_ != 2 || in_metadata_ || array_ || key_ == "dtype") unexpected("an array");
    array_ = true;
    return true;
  }
  bool end_array() override {
    array_ = false;
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (!array_) unexpected("a number");
    auto& list = key_ == "shape" ? sizes_ : offsets_;
    if (list.size() >= (key_ == "shape" ? static_cast<std::size_t>(kMaxRank) : 2u))
      fail(cat("tensor '", shown(entry().name), "': '", key_, "' has too many numbers"));
    list.push_back(value);
    return true;
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool number_integer(std::int64_t) override { unexpected("a negative number"); }
  bool number_float(double) override { unexpected("a number that is not whole"); }
  bool parse_error(std::size_t position, const char*) override {
    fail(cat("is not valid JSON at byte ", position + 8));
  }

 private:
  SafeTensorsEntry& entry() { return header_.entries.back(); }

  void set_type(const std::string& text) {
    for (const TypeName& row : kTypeNames)
      if (text == row.text) {
        entry().dtype = row.dtype;
        item_ = item_size(row.dtype);
        return;
      }
    for (const ForeignName& row : kForeignNames)
      if (text == row.text) {
        entry().dtype = row.dtype;
        entry().stored = row.name;
        entry().conversion = row.conversion;
        item_ = row.item;
        return;
      }
    entry().stored = shown(text);
    entry().conversion = Conversion::Unreadable;
    item_ = 0;
  }
  void finish_entry() {
    SafeTensorsEntry& e = entry();
    if (fields_ != 7u || offsets_.size() != 2)
      fail(cat("tensor '", shown(e.name), "' needs 'dtype', 'shape' and two 'data_offsets'"));
    std::int64_t sizes[kMaxRank] = {};
    std::uint64_t count = 0;
    if (!count_elements(std::span<const std::uint64_t>(sizes_), count))
      fail(cat("tensor '", shown(e.name), "' has a shape of more than 2^56 elements"));
    for (std::size_t i = 0; i < sizes_.size(); ++i) sizes[i] = static_cast<std::int64_t>(sizes_[i]);
    e.begin = offsets_[0];
    e.end = offsets_[1];
    const bool of_known_size = item_ > 0;
    if (e.end < e.begin || (of_known_size && e.end - e.begin != count * item_))
      fail(cat("tensor '", shown(e.name), "' of ", count, " elements of ",
               e.stored.empty() ? name(e.dtype) : e.stored, " has data_offsets [", e.begin, ", ",
               e.end, "], which is not ",
               of_known_size ? cat(count * item_, " bytes") : std::string("in order")));
    e.shape = Shape(sizes, static_cast<int>(sizes_.size()));
  }
  static std::string_view shown(const std::string& text) {
    return std::string_view(text).substr(0, 80);
  }
  [[noreturn]] void unexpected(const char* what) const {
    fail(cat("has ", what, " where none is expected",
             key_.empty() ? "" : cat(", at '", shown(key_), "'")));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw make_error<FormatError>(FileName{name_}, ": the safetensors header ", what);
  }

  SafeTensorsHeader& header_;
  const std::string& name_;
  int level_ = 0;
  bool in_metadata_ = false, array_ = false;
  unsigned fields_ = 0;
  std::uint64_t item_ = 0;  // bytes of an element; 0: unknown type
  std::string key_;
  std::unordered_set<std::string> names_;
  std::vector<std::uint64_t> sizes_, offsets_;
};

constexpr std::size_t kDigits = 8;  // hexadecimal digits of a checksum

// Accepts {"name": "cbf43926", …}, each name once, and stops at anything else. A file may have a
// hundred thousand tensors, so no JSON tree is built.
class ChecksumsHandler final : public JsonSax {
 public:
  explicit ChecksumsHandler(std::unordered_map<std::string, std::string>& sums) : sums_(sums) {}

  bool start_object() override { return !std::exchange(inside_, true); }
  bool end_object() override { return true; }
  bool key(std::string& text) override {
    key_ = text;
    return true;
  }
  bool string(std::string& text) override {
    return inside_ && text.size() == kDigits && sums_.emplace(key_, text).second;
  }
  bool start_array() override { return false; }
  bool end_array() override { return false; }
  bool number_unsigned(std::uint64_t) override { return false; }
  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(std::int64_t) override { return false; }
  bool number_float(double) override { return false; }
  bool parse_error(std::size_t, const char*) override { return false; }

 private:
  std::unordered_map<std::string, std::string>& sums_;
  bool inside_ = false;
  std::string key_;
};

std::string text_of(const Json& json) {
  try {
    return json_text(json);
  } catch (const Json::exception&) {
    throw ValueError("save_safetensors: a name or the metadata is not valid UTF-8");
  }
}

// Checksum of the header without the offsets, which another program may choose differently.
std::string header_crc(const SafeTensorsHeader& header) {
  std::string text;
  const auto add = [&text](std::string_view part) { text.append(part).push_back('\0'); };
  for (const auto& [key, value] : header.metadata) {
    add(key);
    add(value);
  }
  std::vector<const SafeTensorsEntry*> entries;
  for (const SafeTensorsEntry& e : header.entries) entries.push_back(&e);
  std::sort(entries.begin(), entries.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const SafeTensorsEntry* e : entries) {
    add(e->name);
    add(cat(e->stored.empty() ? type_name(e->dtype) : e->stored, " ", e->shape));
  }
  return crc_text(text);
}

void take_checksums(SafeTensorsHeader& header, const std::string& file) {
  const auto found = header.metadata.find(kCrcKey);
  if (found == header.metadata.end()) return;
  std::unordered_map<std::string, std::string> sums;
  ChecksumsHandler handler(sums);
  if (!sax_parse(found->second, handler)) sums.clear();
  header.metadata.erase(found);
  const auto sum_of = [&](const std::string& name) {
    const auto sum = sums.find(name);
    return sum != sums.end() ? sum->second : std::string("none");
  };
  const std::string wanted = sum_of(kMetadata);
  if (const std::string crc = header_crc(header); crc != wanted)
    throw make_error<FormatError>(FileName{file}, " is damaged: the checksum of its header is ",
                                  crc, ", expected ", wanted,
                                  ": use another copy of the file (or, if a program changed it ",
                                  "intentionally, remove its metadata '", kCrcKey, "')");
  for (SafeTensorsEntry& e : header.entries) e.crc = sum_of(e.name);
}

}  // namespace

std::string crc_text(std::string_view bytes) {
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  std::string text(kDigits, '0');
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = "0123456789abcdef"[crc >> (28 - 4 * i) & 15];
  return text;
}

void add_checksums(SafeTensorsHeader& header) {
  header.metadata.erase(kCrcKey);  // checksums of the file that was copied
  Json sums = Json::object();
  sums[kMetadata] = header_crc(header);
  for (const SafeTensorsEntry& e : header.entries) sums.add(e.name, e.crc);
  header.metadata[kCrcKey] = text_of(sums);
}

SafeTensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                           const std::string& name) {
  SafeTensorsHeader header;
  HeaderHandler handler(header, name);
  if (json.empty() || json.front() != '{')
    throw make_error<FormatError>(FileName{name},
                                  ": the safetensors header does not begin with '{'");
  sax_parse(json, handler);
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafeTensorsEntry& a, const SafeTensorsEntry& b) {
              return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
            });
  std::uint64_t covered = 0;
  for (const SafeTensorsEntry& e : header.entries) {
    if (e.begin != covered)
      throw make_error<FormatError>(FileName{name}, ": the bytes of tensor '", e.name.substr(0, 80),
                                    "' begin at ", e.begin, " where ", covered,
                                    " was expected: tensors overlap or leave a gap");
    covered = e.end;
  }
  if (covered != data_bytes)
    throw make_error<FormatError>(FileName{name}, ": the header's tensors take ", covered,
                                  " bytes, the file has ", data_bytes,
                                  " after the header: the file is truncated or damaged");
  take_checksums(header, name);
  return header;
}

void require_readable(const SafeTensorsHeader& header, const std::string& name) {
  for (const SafeTensorsEntry& e : header.entries)
    if (e.conversion == Conversion::Unreadable)
      throw make_error<NotSupported>(
          FileName{name}, ": tensor '", e.name.substr(0, 80), "' has element type ", e.stored,
          ", which no type of Tenon (BOOL, U8, I8, I32, I64, F16, BF16, F32, F64) "
          "represents exactly: convert it before saving");
}

std::string safetensors_header(const SafeTensorsHeader& header) {
  Json root = Json::object();
  if (!header.metadata.empty()) root[kMetadata] = header.metadata;
  for (const SafeTensorsEntry& e : header.entries) {
    if (e.name == kMetadata)
      throw ValueError("save_safetensors: no tensor may be named '__metadata__'");
    Json row;
    row["dtype"] = type_name(e.dtype);
    row["shape"] = std::vector<std::int64_t>(e.shape.begin(), e.shape.end());
    row["data_offsets"] = Json().append(e.begin).append(e.end);
    // No search for an equal key, which would take quadratic time: the names are already unique.
    root.add(e.name, std::move(row));
  }
  std::string text = text_of(root);
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i) & 0xff);
  return bytes + text;
}

}  // namespace tenon::io

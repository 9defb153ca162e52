// GGUF, the file format of llama.cpp (versions 2 and 3, little-endian): metadata, a table of
// tensors (innermost dimension first), and their bytes at multiples of an alignment. Blocks of 32
// weights with one scale (q8_0, q4_0) are read as float32.
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/byte_order.h"
#include "io/sizes.h"
#include "io/tensors/weight_table.h"

namespace tenon::io {
namespace {

static_assert(std::endian::native == std::endian::little,
              "GGUF stores little-endian values; add swaps for this machine");

constexpr std::string_view kGgufMagic = "GGUF";
constexpr int kGgufBlock = 32;    // weights per scale
constexpr int kDeepestArray = 4;  // nesting of arrays
constexpr std::uint64_t kMostAlignment = 1 << 16;
constexpr std::size_t kScale = sizeof(std::uint16_t);

struct GgufType {
  std::uint32_t number;
  const char* name;
  DType dtype;        // type after reading
  std::size_t bytes;  // bytes of one element or block
  bool in_blocks = false;
};
constexpr GgufType kGgufTypes[] = {
    {0, "f32", DType::Float32, 4},
    {1, "f16", DType::Float16, 2},
    {2, "q4_0", DType::Float32, kScale + kGgufBlock / 2, true},
    {8, "q8_0", DType::Float32, kScale + kGgufBlock, true},
    {24, "i8", DType::Int8, 1},
    {26, "i32", DType::Int32, 4},
    {27, "i64", DType::Int64, 8},
    {28, "f64", DType::Float64, 8},
    {30, "bf16", DType::BFloat16, 2},
};
// Names of ggml types that are not supported, for messages.
constexpr const char* kOtherTypes[] = {nullptr,   nullptr, nullptr,  "q4_1",  nullptr,   nullptr,
                                       "q5_0",    "q5_1",  nullptr,  "q8_1",  "q2_K",    "q3_K",
                                       "q4_K",    "q5_K",  "q6_K",   "q8_K",  "iq2_xxs", "iq2_xs",
                                       "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s", "iq2_s",   "iq4_xs",
                                       nullptr,   "i16",   nullptr,  nullptr, nullptr,   "iq1_m"};

float scale_at(const char* at) {
  float16 scale;
  std::memcpy(&scale.bits, at, sizeof scale.bits);
  return static_cast<float>(scale);
}

Tensor unpack_blocks(std::string_view bytes, const Shape& shape, const GgufType& type) {
  std::vector<float> out(static_cast<std::size_t>(shape.numel()));
  const bool nibbles = type.bytes == kScale + kGgufBlock / 2;
  const char* at = bytes.data();
  for (std::size_t first = 0; first < out.size(); first += kGgufBlock, at += type.bytes) {
    const float scale = scale_at(at);
    const auto* packed = reinterpret_cast<const unsigned char*>(at + kScale);
    for (std::size_t k = 0; k < kGgufBlock; ++k) {
      const int level = !nibbles             ? static_cast<std::int8_t>(packed[k])
                        : k < kGgufBlock / 2 ? (packed[k] & 15) - 8
                                             : (packed[k - kGgufBlock / 2] >> 4) - 8;
      out[first + k] = scale * static_cast<float>(level);
    }
  }
  return Tensor::from_data(out.data(), shape, DType::Float32, Device{});
}

class GgufReader {
 public:
  GgufReader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  WeightTable read() {
    if (!is_gguf(bytes_))
      throw make_error<FormatError>(FileName{name_},
                                    ": not a GGUF file: it does not start with 'GGUF'");
    at_ = kGgufMagic.size();
    const auto version = number<std::uint32_t>("its version");
    if (version < 2 || version > 3)
      throw make_error<NotSupported>(FileName{name_}, ": GGUF of version ", version,
                                     version > 0xffff ? " (or of a big-endian machine)" : "",
                                     "; versions 2 and 3 are supported");
    const auto tensors = number<std::uint64_t>("its number of tensors");
    const auto values = number<std::uint64_t>("its number of values");
    constexpr std::uint64_t least_value = 8 + 4 + 1, least_tensor = 8 + 4 + 4 + 8;
    if (values > left() / least_value || tensors > left() / least_tensor)
      damaged(cat("says it has ", tensors, " tensors and ", values, " values"));
    for (std::uint64_t i = 0; i < values; ++i) read_value();
    table_.format = "gguf";
    table_.tensors.reserve(static_cast<std::size_t>(tensors));
    for (std::uint64_t i = 0; i < tensors; ++i) read_tensor();
    if (alignment_ == 0 || alignment_ > kMostAlignment || !std::has_single_bit(alignment_))
      damaged(cat("has an alignment of ", alignment_));
    const std::uint64_t data = (at_ + alignment_ - 1) / alignment_ * alignment_;
    for (std::size_t i = 0; i < pending_.size(); ++i) place(i, data);
    check_weights(table_, bytes_.size(), name_);
    return std::move(table_);
  }

 private:
  struct Pending {
    const GgufType* type;
    std::uint64_t offset, bytes;
  };

  std::uint64_t left() const { return bytes_.size() - at_; }

  template <class T>
  T number(std::string_view what) {
    if (left() < sizeof(T)) damaged(cat("ends before ", what));
    const T value = read_little<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return value;
  }
  std::string_view text(std::string_view what) {
    const auto size = number<std::uint64_t>(what);
    if (size > left()) damaged(cat("has a string of ", size, " bytes for ", what));
    const std::string_view out = bytes_.substr(at_, static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
    return out;
  }

  void read_value() {
    const std::string key(text("the name of a value"));
    const auto type = number<std::uint32_t>("the type of a value");
    const std::string value = value_text(type, 0);
    if (key == "general.alignment") {
      if (type != 4) damaged("has an alignment that is not a 32-bit number");
      alignment_ = std::strtoull(value.c_str(), nullptr, 10);
    }
    table_.metadata[key] = value;
  }

  // A scalar or string as text; for an array its length (the elements are skipped).
  std::string value_text(std::uint32_t type, int depth) {
    switch (type) {
      case 0:
        return cat(static_cast<int>(number<std::uint8_t>("a value")));
      case 1:
        return cat(static_cast<int>(number<std::int8_t>("a value")));
      case 2:
        return cat(static_cast<int>(number<std::uint16_t>("a value")));
      case 3:
        return cat(static_cast<int>(number<std::int16_t>("a value")));
      case 4:
        return cat(number<std::uint32_t>("a value"));
      case 5:
        return cat(number<std::int32_t>("a value"));
      case 6:
        return cat(number<float>("a value"));
      case 7:
        return number<std::uint8_t>("a value") != 0 ? "true" : "false";
      case 8:
        return std::string(text("a value"));
      case 9:
        return array_text(depth);
      case 10:
        return cat(number<std::uint64_t>("a value"));
      case 11:
        return cat(number<std::int64_t>("a value"));
      case 12:
        return cat(number<double>("a value"));
      default:
        damaged(cat("has a value of the unknown type ", type));
    }
  }
  std::string array_text(int depth) {
    constexpr std::size_t sizes[] = {1, 1, 2,  2, 4, 4, 4,
                                     1, 8, 12, 8, 8, 8};  // minimum bytes per value, by type
    const auto type = number<std::uint32_t>("the type of an array");
    const auto count = number<std::uint64_t>("the length of an array");
    if (type >= std::size(sizes)) damaged(cat("has an array of the unknown type ", type));
    if (count > left() / sizes[type] || depth > kDeepestArray)
      damaged(cat("has an array of ", count, " values, more than there are bytes"));
    if (type == 8 || type == 9) {
      for (std::uint64_t i = 0; i < count; ++i)
        if (type == 8)
          text("a string of an array");
        else
          array_text(depth + 1);
    } else {
      at_ += static_cast<std::size_t>(count) * sizes[type];
    }
    return cat(count, " values");
  }

  void read_tensor() {
    StoredTensor tensor;
    tensor.name = text("the name of a tensor");
    const auto rank = number<std::uint32_t>("the rank of a tensor");
    if (rank > static_cast<std::uint32_t>(kMaxRank)) refuse(tensor, cat("has ", rank, " sizes"));
    std::uint64_t sizes[kMaxRank] = {};  // in our order: slowest dimension first
    for (std::uint32_t i = 0; i < rank; ++i)
      sizes[rank - 1 - i] = number<std::uint64_t>("the sizes of a tensor");
    const GgufType& type = type_of(tensor, number<std::uint32_t>("the type of a tensor"));
    const auto offset = number<std::uint64_t>("the offset of a tensor");
    std::uint64_t count = 0;
    if (!count_elements(std::span<const std::uint64_t>(sizes, rank), count))
      refuse(tensor, "has a shape of more than 2^56 elements");
    if (type.in_blocks && (rank == 0 || sizes[rank - 1] % kGgufBlock != 0))
      refuse(tensor, cat("is of type ", type.name, ", but its rows are not whole blocks"));
    std::int64_t out[kMaxRank] = {};
    for (std::uint32_t i = 0; i < rank; ++i) out[i] = static_cast<std::int64_t>(sizes[i]);
    tensor.shape = Shape(out, static_cast<int>(rank));
    tensor.dtype = type.dtype;
    if (type.in_blocks) tensor.stored = type.name;
    tensor.value = table_.tensors.size();
    table_.tensors.push_back(std::move(tensor));
    pending_.push_back({&type, offset, count / (type.in_blocks ? kGgufBlock : 1) * type.bytes});
  }

  const GgufType& type_of(const StoredTensor& tensor, std::uint32_t number) const {
    for (const GgufType& type : kGgufTypes)
      if (type.number == number) return type;
    const char* other = number < std::size(kOtherTypes) ? kOtherTypes[number] : nullptr;
    throw make_error<NotSupported>(FileName{name_}, ": tensor '", tensor.name.substr(0, 120),
                                   "' has element type ",
                                   other != nullptr ? std::string(other) : cat("number ", number),
                                   "; supported: f32, f16, bf16, f64, i8, i32, i64, q8_0 and q4_0");
  }

  void place(std::size_t index, std::uint64_t data) {
    const Pending& is = pending_[index];
    const StoredTensor& tensor = table_.tensors[index];
    if (is.offset % alignment_ != 0)
      refuse(tensor, cat("begins at ", is.offset, ", which is not aligned"));
    if (data > bytes_.size() || is.offset > bytes_.size() - data ||
        is.bytes > bytes_.size() - data - is.offset)
      refuse(tensor, cat("ends beyond the file: the file is truncated, fetch it again"));
    const std::string_view bytes = bytes_.substr(static_cast<std::size_t>(data + is.offset),
                                                 static_cast<std::size_t>(is.bytes));
    const Shape shape = tensor.shape;
    const GgufType& type = *is.type;
    table_.values.emplace_back([bytes, shape, &type] {
      if (type.in_blocks) return unpack_blocks(bytes, shape, type);
      return Tensor::from_data(bytes.data(), shape, type.dtype, Device{});
    });
  }

  [[noreturn]] void damaged(std::string_view what) const {
    throw make_error<FormatError>(FileName{name_}, ": damaged GGUF file: it ", what);
  }
  [[noreturn]] void refuse(const StoredTensor& tensor, std::string_view what) const {
    throw make_error<FormatError>(FileName{name_}, ": damaged GGUF file: tensor '",
                                  tensor.name.substr(0, 120), "' ", what);
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::uint64_t alignment_ = 32;
  WeightTable table_;
  std::vector<Pending> pending_;
};

}  // namespace

bool is_gguf(std::string_view bytes) noexcept {
  return bytes.size() > kGgufMagic.size() + 4 && bytes.starts_with(kGgufMagic);
}

WeightTable read_gguf(std::string_view bytes, const std::string& name) {
  return GgufReader(bytes, name).read();
}

}  // namespace tenon::io

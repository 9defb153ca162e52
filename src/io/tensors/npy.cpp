// The .npy reader and writer. The parser of the header's dictionary accepts exactly the literals
// that NumPy writes.
#include "io/tensors/npy.h"

#include <bit>
#include <cstring>
#include <span>

#include <tenon/error.h>
#include <tenon/io.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/byte_order.h"
#include "io/file.h"
#include "io/lfs.h"
#include "io/sizes.h"

namespace tenon::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct NpyHeader {
  std::string descr;
  bool fortran = false;
  std::int64_t sizes[kMaxRank] = {};
  int rank = 0;
  bool has_descr = false, has_order = false, has_shape = false;
};

// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::size_t offset, const std::string& name)
      : text_(text), offset_(offset), name_(name) {}

  NpyHeader parse() {
    expect('{');
    while (!accept('}')) {
      entry();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("text after the dictionary");
    if (!header_.has_descr || !header_.has_order || !header_.has_shape)
      fail("'descr', 'fortran_order' or 'shape' is missing");
    return header_;
  }

 private:
  void entry() {
    const std::string key(quoted());
    expect(':');
    skip_space();
    if (key == "descr" && !header_.has_descr) {
      header_.has_descr = true;
      if (peek() == '[')
        throw make_error<NotSupported>(
            FileName{name_},
            ": contains records (a structured array): save its fields as separate arrays");
      header_.descr = quoted();
    } else if (key == "fortran_order" && !header_.has_order) {
      header_.has_order = true;
      header_.fortran = boolean();
    } else if (key == "shape" && !header_.has_shape) {
      header_.has_shape = true;
      shape();
    } else {
      fail(cat("unexpected or repeated key '", key.substr(0, 40), "'"));
    }
  }
  void shape() {
    expect('(');
    while (!accept(')')) {
      if (header_.rank == kMaxRank)
        throw make_error<NotSupported>(FileName{name_}, ": has more than ", kMaxRank,
                                       " dimensions");
      header_.sizes[header_.rank++] = integer();
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }
  std::int64_t integer() {
    skip_space();
    std::int64_t value = 0;
    const std::size_t start = at_;
    while (peek() >= '0' && peek() <= '9') {
      if (value > (std::int64_t{1} << 58)) fail("a size is out of range");
      value = value * 10 + (text_[at_++] - '0');
    }
    if (at_ == start) fail("a size was expected");
    if (peek() == 'L') ++at_;  // written by Python 2
    return value;
  }
  bool boolean() {
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    fail("True or False was expected");
  }
  std::string_view quoted() {
    skip_space();
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("a quoted string was expected");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string is not closed");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool accept(char c) {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(cat("'", c, "' was expected"));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw make_error<FormatError>(FileName{name_}, ": damaged .npy header at byte ", offset_ + at_,
                                  ": ", what);
  }

  std::string_view text_;
  std::size_t offset_;
  const std::string& name_;
  std::size_t at_ = 0;
  NpyHeader header_;
};

DType dtype_of_descr(std::string_view code, const std::string& name) {
  struct Row {
    std::string_view code;
    DType dtype;
  };
  static constexpr Row rows[] = {
      {"b1", DType::Bool},  {"u1", DType::UInt8},   {"i1", DType::Int8},    {"i4", DType::Int32},
      {"i8", DType::Int64}, {"f2", DType::Float16}, {"f4", DType::Float32}, {"f8", DType::Float64}};
  for (const Row& row : rows)
    if (row.code == code) return row.dtype;
  if (code == "V2")
    throw make_error<NotSupported>(
        FileName{name},
        ": contains two-byte items without a type, perhaps bfloat16, which NumPy lacks: save it as "
        "float32, or as safetensors");
  throw make_error<NotSupported>(
      FileName{name}, ": element type '", code.substr(0, 40),
      "' is not one of bool, uint8, int8, int32, int64, float16, float32, "
      "float64: convert it with astype()");
}

const char* descr_of_dtype(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "|b1";
    case DType::UInt8:
      return "|u1";
    case DType::Int8:
      return "|i1";
    case DType::Int32:
      return "<i4";
    case DType::Int64:
      return "<i8";
    case DType::Float16:
      return "<f2";
    case DType::Float32:
      return "<f4";
    case DType::Float64:
      return "<f8";
    case DType::BFloat16:
      break;
  }
  throw DTypeError(
      "NumPy has no bfloat16: convert the tensor to float32 first, or save it as "
      "safetensors");
}

// Converts column-major to row-major: writes the output in order and steps through the input by
// strides.
std::string transpose_order(const char* from, const Shape& shape, std::size_t item) {
  const int rank = shape.rank();
  const auto count = static_cast<std::size_t>(shape.numel());
  std::string out(count * item, '\0');
  std::size_t stride[kMaxRank];
  std::int64_t index[kMaxRank] = {};
  std::size_t step = item;
  for (int i = 0; i < rank; ++i) {
    stride[i] = step;
    step *= static_cast<std::size_t>(shape[i]);
  }
  std::size_t source = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(out.data() + i * item, from + source, item);
    for (int axis = rank - 1; axis >= 0; --axis) {
      source += stride[axis];
      if (++index[axis] < shape[axis]) break;
      source -= stride[axis] * static_cast<std::size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return out;
}

std::string_view header_text(std::string_view bytes, const std::string& name) {
  refuse_lfs_pointer(bytes, name);
  if (bytes.size() < 10 || !bytes.starts_with(kMagic))
    throw make_error<FormatError>(FileName{name},
                                  ": not a .npy file: its first bytes are not \\x93NUMPY");
  const int major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3)
    throw make_error<FormatError>(FileName{name}, ": .npy version ", major,
                                  " at byte 6 is not 1, 2 or 3");
  const std::size_t prefix = major == 1 ? 10 : 12;
  if (bytes.size() < prefix)
    throw make_error<FormatError>(FileName{name}, ": ends inside its header");
  const std::size_t length = major == 1 ? read_little<std::uint16_t>(bytes.data() + 8)
                                        : read_little<std::uint32_t>(bytes.data() + 8);
  if (length > bytes.size() - prefix)
    throw make_error<FormatError>(FileName{name}, ": the header says it has ", length,
                                  " bytes, the file has ", bytes.size() - prefix, " after byte ",
                                  prefix, ": the file is truncated or damaged");
  return bytes.substr(prefix, length);
}

Shape checked_shape(const NpyHeader& header, std::size_t item, std::uint64_t available,
                    const std::string& name) {
  std::uint64_t count = 0;
  const std::span<const std::int64_t> sizes(header.sizes, static_cast<std::size_t>(header.rank));
  const bool sane = count_elements(sizes, count);
  if (!sane || count * item != available)
    throw make_error<FormatError>(FileName{name}, ": the header's shape needs ",
                                  sane ? cat(count * item) : std::string("more than 2^56"),
                                  " bytes, but ", available,
                                  " follow it: the file is truncated or damaged");
  return Shape(header.sizes, header.rank);
}

}  // namespace

NpyArray read_npy_header(std::string_view start, std::uint64_t size, const std::string& name) {
  const std::string_view text = header_text(start, name);
  const auto offset = static_cast<std::size_t>(text.data() - start.data());
  const NpyHeader header = HeaderParser(text, offset, name).parse();
  std::string_view code = header.descr;
  bool big = false;
  if (!code.empty() && std::string_view("<>|=").find(code.front()) != std::string_view::npos) {
    big = code.front() == '>';
    code.remove_prefix(1);
  }
  NpyArray array;
  array.dtype = dtype_of_descr(code, name);
  array.values = offset + text.size();
  const std::size_t item = item_size(array.dtype);
  array.shape = checked_shape(header, item, size - array.values, name);
  array.swapped = big == (std::endian::native == std::endian::little) && item > 1;
  array.by_columns = header.fortran && array.shape.rank() > 1;
  return array;
}

Tensor npy_values(const NpyArray& array, std::string_view bytes) {
  const std::string_view values = bytes.substr(array.values);
  const std::size_t item = item_size(array.dtype);
  if (!array.swapped && !array.by_columns && array.dtype != DType::Bool)
    return Tensor::from_data(values.data(), array.shape, array.dtype, Device{});
  std::string own =
      array.by_columns ? transpose_order(values.data(), array.shape, item) : std::string(values);
  if (array.swapped) swap_bytes(own.data(), item, static_cast<std::size_t>(array.shape.numel()));
  if (array.dtype == DType::Bool) normalize_bools(own.data(), own.size());
  return Tensor::from_data(own.data(), array.shape, array.dtype, Device{});
}

Tensor parse_npy(std::string_view bytes, const std::string& name) {
  return npy_values(read_npy_header(bytes, bytes.size(), name), bytes);
}

std::string npy_header(const Shape& shape, DType dtype) {
  std::string text =
      cat("{'descr': '", descr_of_dtype(dtype), "', 'fortran_order': False, 'shape': (");
  for (std::int64_t size : shape) text += cat(size, ", ");
  if (shape.rank() > 1) text.resize(text.size() - 2);
  if (shape.rank() == 1) text.pop_back();
  text += "), }";
  constexpr std::size_t prefix = 10;
  while ((prefix + text.size() + 1) % 64 != 0) text.push_back(' ');
  text.push_back('\n');
  std::string header(kMagic);
  header.push_back('\x01');
  header.push_back('\0');
  header.push_back(static_cast<char>(text.size() & 0xff));
  header.push_back(static_cast<char>(text.size() >> 8));
  return header + text;
}

Tensor load_npy(const std::string& path) { return parse_npy(read_file(path), path); }

void save_npy(const std::string& path, const Tensor& tensor) {
  const std::string header = npy_header(tensor.shape(), tensor.dtype());
  const auto bytes = static_cast<std::size_t>(tensor.numel()) * item_size(tensor.dtype());
  const std::string_view pieces[] = {header, {static_cast<const char*>(tensor.data()), bytes}};
  write_pieces(path, pieces);
}

}  // namespace tenon::io

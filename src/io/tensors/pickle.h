// Python pickles as plain data, binary protocols up to 5: the format of PyTorch's state dicts.
// Nothing is executed or imported: a pickle becomes a list of parts that refer to each other; a
// call is stored as its function's name and arguments. Objects of any class are such calls; the
// behaviour of their classes for attributes and items is ignored. Time and memory are linear in the
// number of bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::io {

struct PicklePart {
  enum class Kind : std::uint8_t {
    None,
    Bool,        ///< integer
    Integer,     ///< integer
    Large,       ///< text: little-endian bytes of a number beyond 64 bits
    Real,        ///< real
    Text,        ///< text, UTF-8
    Bytes,       ///< text
    Tuple,       ///< items
    List,        ///< items
    Dict,        ///< items: key, value, key, value, …
    Name,        ///< text: module.name
    Call,        ///< items: function, tuple of arguments; also an object built by the call
    Set,         ///< items
    Persistent,  ///< items: the reference to data outside the pickle
  };
  Kind kind = Kind::None;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text{};
  std::vector<std::uint32_t> items{};  ///< indices into Pickle::parts
};

struct Pickle {
  std::vector<PicklePart> parts;
  std::uint32_t root = 0;
  std::size_t length = 0;         ///< bytes of the pickle in the file
  std::deque<std::string> names;  ///< strings of its Name parts

  const PicklePart& at(std::uint32_t place) const { return parts[place]; }
  /// Item `i` of a part.
  const PicklePart& item(const PicklePart& part, std::size_t i) const {
    return parts[part.items[i]];
  }
};

/// Reads one pickle from the start of the bytes, which must outlive the result. `where` begins
/// every message. collections.OrderedDict and defaultdict become a Dict. Throws FormatError for
/// damaged bytes, NotSupported for instructions that torch.save() does not write.
Pickle parse_pickle(std::string_view bytes, const std::string& where);

}  // namespace tenon::io

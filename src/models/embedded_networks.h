// The network files of src/models/networks, which are embedded in the library. A file describes one
// built-in network or several variants of one.
//
// It has keys that other network files do not have (docs/internals/networks.md). Its layout is
// fixed, because printed networks repeat its lines: a comment, keys, `layers` with the closing
// bracket on a line of its own, [variables], [blocks.*], [recipe], [with_head], [variants.*].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/system/packed_files.h"
#include "io/text/toml.h"

namespace tenon {
extern const PackedFiles packed_networks;
}

namespace tenon::models {

class EmbeddedNetwork {
 public:
  /// The text must live as long as the network.
  explicit EmbeddedNetwork(const UnpackedFile& file);

  const io::TomlValue& tree() const { return tree_; }
  /// The keys of the file with those of the network `name`, a variant or the file itself, in their
  /// place, after those of the variant that it is `like`. Tables are combined key by key.
  io::TomlValue facts_of(const std::string& name) const;

  /// A line of the file, from 1, without its end.
  std::string_view line(int number) const;
  /// The comment above the first key.
  std::string head_comment() const;
  /// Lines from this one to the one that closes a list, "]".
  std::string list_from(int number) const;
  /// Lines from `from` to the one before `to`.
  std::string lines(int from, int to) const;
  /// All tables [blocks.NAME], after an empty line; "" : there are none.
  std::string blocks() const;

 private:
  std::vector<std::string_view> lines_;
  io::TomlValue tree_;
};

/// The file of this name, parsed at the first call. Throws InternalError for another name.
const EmbeddedNetwork& embedded_network(std::string_view name);

/// The networks of a file, in its order: its variants, or the file's own name.
std::vector<std::string> networks_of_file(std::string_view name);

/// Entries of `over` in place of those of `base`, or after them; tables of both are combined.
void overlay(io::TomlValue& base, const io::TomlValue& over);

}  // namespace tenon::models

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
  /// The keys of the network `name`, a variant or the file itself. The keys of a variant override
  /// those of the file and of the variant that its key `like` names. Tables are merged key by key.
  io::TomlValue facts_of(const std::string& name) const;

  /// A line of the file, from 1, without its end.
  std::string_view line(int number) const;
  /// The comment above the first key.
  std::string head_comment() const;
  /// Lines from this one to the "]" that closes its list.
  std::string list_from(int number) const;
  /// Lines from `from` to the one before `to`.
  std::string lines(int from, int to) const;
  /// All tables [blocks.NAME], with an empty line before them; "" if there are none.
  std::string blocks() const;

 private:
  std::vector<std::string_view> lines_;
  io::TomlValue tree_;
};

/// The file of this name, parsed at the first call. Throws InternalError for another name.
const EmbeddedNetwork& embedded_network(std::string_view name);

/// The networks of a file, in its order: its variants, or the file's own name.
std::vector<std::string> networks_of_file(std::string_view name);

/// Merges `over` into `base`: entries with the same key are replaced, others appended, and tables
/// that both have are merged key by key.
void overlay(io::TomlValue& base, const io::TomlValue& over);

}  // namespace tenon::models

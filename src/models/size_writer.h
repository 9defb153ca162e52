// Sizes in the name of a network, written into the keys of its file.
#pragma once

#include <string>
#include <vector>

#include "io/text/toml.h"
#include "models/name_values.h"

namespace tenon::models {

/// Sizes of a name on their way into the keys of a network.
class SizeWriter {
 public:
  /// Throws ValueError if `text` has a key that is not in `taken`.
  SizeWriter(io::TomlValue& keys, const std::string& name, const std::string& text,
             const std::vector<std::string>& taken);
  /// A variable, a whole number from 1.
  void whole(const std::string& key);
  /// A variable from `low` to `high`.
  void number(const std::string& key, double low, double high);
  /// A key of the network itself, a whole number from 1.
  void own_whole(const std::string& key);
  /// What every Transformer has: layers, heads, width, hidden, context, activation, eps. Throws
  /// ValueError for a width that does not divide into the heads.
  void transformer();
  /// Throws ValueError for a width that does not divide into the heads.
  void require_heads() const;
  /// The value that a variable has by now.
  double value(const std::string& variable) const;

 private:
  void set_variable(const std::string& key, io::TomlValue value);
  io::TomlValue& keys_;
  std::string name_, text_;
  NameValues values_;
};

}  // namespace tenon::models

// Sizes in the name of a network, written into the keys of its file.
#pragma once

#include <string>
#include <vector>

#include "io/text/toml.h"
#include "models/name_values.h"

namespace tenon::models {

/// Parses the sizes in a name and writes them into the keys of a network.
class SizeWriter {
 public:
  /// Throws ValueError if `text` has a key that is not in `taken`.
  SizeWriter(io::TomlValue& keys, const std::string& name, const std::string& text,
             const std::vector<std::string>& taken);
  /// Sets a variable, a whole number of at least 1, if the name has it. Likewise below.
  void whole(const std::string& key);
  /// Sets a variable, a number from `low` to `high`.
  void number(const std::string& key, double low, double high);
  /// Sets a key of the file, not a variable: a whole number of at least 1.
  void own_whole(const std::string& key);
  /// Sets the sizes of every Transformer: layers, heads, width, hidden, context, activation, eps.
  /// Throws ValueError for a width that does not divide into the heads.
  void transformer();
  /// Throws ValueError for a width that does not divide into the heads.
  void require_heads() const;
  /// The current value of a variable.
  double value(const std::string& variable) const;

 private:
  void set_variable(const std::string& key, io::TomlValue value);
  io::TomlValue& keys_;
  std::string name_, text_;
  NameValues values_;
};

}  // namespace tenon::models

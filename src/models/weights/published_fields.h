// Access to the fields of config.json, and the network name built from them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io/text/json.h"

namespace tenon::models {

/// The fields of one config, requested by key. A null field counts as absent. Values of another
/// type or out of range throw FormatError with the key.
class PublishedFields {
 public:
  /// `json` must be an object and outlive this object; `path` starts all messages.
  PublishedFields(const io::Json& json, std::string path);

  const std::string& path() const { return path_; }
  const io::Json* find(const char* key);
  /// A field with an alias that other families use. Throws FormatError if the two differ.
  const io::Json* find(const char* key, const char* alias);
  /// An integer of at least 1.
  std::int64_t whole(const char* key, std::int64_t fallback, const char* alias = "");
  double number(const char* key, double fallback, double low, double high);
  std::string text(const char* key, const char* fallback);
  bool boolean(const char* key, bool fallback);
  /// A list of integers of at least 1; required.
  std::vector<std::int64_t> wholes(const char* key);
  std::vector<double> numbers(const io::Json& list, const char* key) const;
  /// Refuses a field whose value differs from the one that Tenon implements.
  void require(const char* key, bool wanted, const char* what);
  /// Throws NotSupported: `field` describes the config's value, `what` Tenon's behaviour.
  [[noreturn]] void refuse(const std::string& field, const std::string& what) const;
  [[noreturn]] void refuse_format(const std::string& what) const;
  /// Fields that were not requested, except those known to have no effect.
  std::vector<std::string> unknown() const;

 private:
  const io::Json& json_;
  std::string path_;
  std::set<std::string> asked_;
};

/// Builds the name of a network: the config's values as keys of the name. Throws ValueError with
/// both values if the user's name contradicts the config.
class PublishedName {
 public:
  /// `asked` is the user's name: its stem, and values for some keys.
  PublishedName(std::string asked, std::string path);

  const std::string& stem() const { return stem_; }
  /// Adds a key unless its value is the default.
  void put(const char* key, const char* field, std::int64_t value, std::int64_t usual);
  void put(const char* key, const char* field, double value, double usual);
  void put(const char* key, const char* field, const std::string& value, const char* usual);
  /// For a key that the stem determines, such as those of gpt2_medium.
  void require(const char* key, const char* field, std::int64_t value, std::int64_t fixed);
  /// Throws ValueError for a key in the user's name that no field corresponds to.
  std::string name() const;

 private:
  void put_text(const char* key, const char* field, const std::string& value, bool usual);
  [[noreturn]] void refuse(const char* key, const char* field, const std::string& published,
                           const std::string& asked) const;
  std::string base_stem() const;

  std::string asked_, path_, stem_, out_;
  std::vector<std::pair<std::string, std::string>> given_;
  std::set<std::string> said_;
};

}  // namespace tenon::models

// Access to the fields of config.json, and the network name built from them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io/json.h"

namespace tenon::train {

/// Fields of one config, each asked for by its key. A field that is null is not there. Values of
/// another kind or out of their range throw FormatError with the key.
class PublishedFields {
 public:
  /// `json` is an object and must outlive the fields; `path` begins messages.
  PublishedFields(const io::Json& json, std::string path);

  const std::string& path() const { return path_; }
  const io::Json* find(const char* key);
  /// A field with a second name, which other families use. Throws FormatError where both differ.
  const io::Json* find(const char* key, const char* alias);
  /// A whole number from 1.
  std::int64_t whole(const char* key, std::int64_t fallback, const char* alias = "");
  double number(const char* key, double fallback, double low, double high);
  std::string text(const char* key, const char* fallback);
  bool truth(const char* key, bool fallback);
  /// A list of whole numbers from 1, which must be there.
  std::vector<std::int64_t> wholes(const char* key);
  std::vector<double> numbers(const io::Json& list, const char* key) const;
  /// Refuses a field whose value is not the one that Tenon computes with.
  void require(const char* key, bool wanted, const char* what);
  /// NotSupported: `field` says what the config has, `what` what Tenon's network does.
  [[noreturn]] void refuse(const std::string& field, const std::string& what) const;
  [[noreturn]] void refuse_format(const std::string& what) const;
  /// Fields that nobody asked for, but for those that change nothing here.
  std::vector<std::string> unknown() const;

 private:
  const io::Json& json_;
  std::string path_;
  std::set<std::string> asked_;
};

/// The name of a network under way: what the config says, as the name's keys. What the user's name
/// says otherwise throws ValueError with both values.
class PublishedName {
 public:
  /// `asked` is the name that the user gave: its stem, and values for some keys.
  PublishedName(std::string asked, std::string path);

  const std::string& stem() const { return stem_; }
  /// Adds a key unless its value is the usual one, which a name without the key stands for.
  void put(const char* key, const char* field, std::int64_t value, std::int64_t usual);
  void put(const char* key, const char* field, double value, double usual);
  void put(const char* key, const char* field, const std::string& value, const char* usual);
  /// For a key that the stem fixes, as those of gpt2_medium.
  void require(const char* key, const char* field, std::int64_t value, std::int64_t fixed);
  /// Throws ValueError for a key of the user's that no field has to do with.
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

}  // namespace tenon::train

// The values after the colon in the name of a network: "layers=4,eps=1e-06,activation=relu".
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tenon::models {

class NameValues {
 public:
  /// Throws ValueError for a key that is not in `keys`; the message suggests a similar key and
  /// lists the keys.
  NameValues(const std::string& model, const std::string& text,
             const std::vector<std::string>& keys);
  /// Sets `value` to a whole number of at least 1; returns whether the name has the key.
  bool whole(const std::string& key, std::int64_t& value) const;
  /// Sets `value` to a number from `low` to `high`; returns whether the name has the key.
  bool number(const std::string& key, double low, double high, double& value) const;
  /// Sets `value` to one of the words; returns whether the name has the key.
  bool word(const std::string& key, const std::vector<std::string>& choices,
            std::string& value) const;

 private:
  const std::string* find(const std::string& key) const;
  [[noreturn]] void refuse(const std::string& key, const std::string& what) const;
  std::string model_, text_;
  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace tenon::models

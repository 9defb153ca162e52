// What the name of a network says after its colon: "layers=4,eps=1e-06,activation=relu".
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tenon::models {

class NameValues {
 public:
  /// Throws ValueError that names the model, with a near miss and the keys it takes, for another
  /// key.
  NameValues(const std::string& model, const std::string& text,
             const std::vector<std::string>& keys);
  /// A whole number from 1; true where the name has one.
  bool whole(const std::string& key, std::int64_t& value) const;
  /// A number from `low` to `high`; true where the name has one.
  bool number(const std::string& key, double low, double high, double& value) const;
  /// One of these words; true where the name has one.
  bool word(const std::string& key, const std::vector<std::string>& choices,
            std::string& value) const;

 private:
  const std::string* find(const std::string& key) const;
  [[noreturn]] void refuse(const std::string& key, const std::string& what) const;
  std::string model_, text_;
  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace tenon::models

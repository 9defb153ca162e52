// Sizes in network files: numbers, and expressions of variables such as "2 * width" and
// "depths[i]".
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

namespace tenon::models {

/// Variables by name, with those of an enclosing scope after them.
class Variables {
 public:
  explicit Variables(const Variables* outer = nullptr) : outer_(outer) {}
  /// Gives a variable of this scope a value.
  void set(const std::string& name, double value);
  /// Gives a variable of this scope a list of numbers; the first one is `name[0]`.
  void set_list(const std::string& name, std::vector<double> values);
  /// Of `width`, `2 * width + 1`, `floor(sqrt(n)) ^ 2`, `depths[i] - 1`, `length(depths)`:
  /// + - * / ^ and parentheses, floor, ceil, round, sqrt, min and max; of lists, places from 0 and
  /// length. Throws ValueError for text that is not an expression, for unknown names (with a near
  /// miss), for a place that a list does not have and for a result that is not finite.
  double value(const std::string& expression) const;
  /// Letters, digits and _, no digit first.
  static bool is_name(const std::string& text);

 private:
  friend class Expression;
  /// The innermost scope that has a variable of this name; null: none has.
  const Variables* scope_of(const std::string& name) const;
  const Variables* outer_;
  std::unordered_map<std::string, double> own_;
  std::unordered_map<std::string, std::vector<double>> lists_;
};

}  // namespace tenon::models

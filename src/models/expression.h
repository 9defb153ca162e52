// Sizes in network files: numbers, and expressions of variables such as "2 * width" and
// "depths[i]".
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

namespace tenon::models {

/// Variables by name; those of an enclosing scope are visible unless hidden.
class Variables {
 public:
  explicit Variables(const Variables* outer = nullptr) : outer_(outer) {}
  /// Gives a variable of this scope a value.
  void set(const std::string& name, double value);
  /// Gives a variable of this scope a list of numbers; the first one is `name[0]`.
  void set_list(const std::string& name, std::vector<double> values);
  /// Evaluates an expression such as `2 * width + 1`, `floor(sqrt(n)) ^ 2` or `depths[i] - 1`. It
  /// may use + - * / ^ and parentheses, floor, ceil, round, sqrt, min and max, elements of lists
  /// (counted from 0) and length(list). Throws ValueError for text that is not an expression, for
  /// an unknown name (with a suggestion), for an index out of range and for a result that is not
  /// finite.
  double value(const std::string& expression) const;
  /// Whether `text` has only letters, digits and _, and does not begin with a digit.
  static bool is_name(const std::string& text);

 private:
  friend class Expression;
  /// The innermost scope that has a variable of this name; null if there is none.
  const Variables* scope_of(const std::string& name) const;
  const Variables* outer_;
  std::unordered_map<std::string, double> own_;
  std::unordered_map<std::string, std::vector<double>> lists_;
};

}  // namespace tenon::models

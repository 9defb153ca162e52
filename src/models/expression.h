// Sizes in network files: numbers, and expressions of variables such as "2 * width".
#pragma once

#include <string>
#include <unordered_map>

namespace tenon::models {

/// Variables by name, with those of an enclosing scope behind them.
class Variables {
 public:
  explicit Variables(const Variables* outer = nullptr) : outer_(outer) {}
  /// Gives a variable of this scope a value.
  void set(const std::string& name, double value);
  /// Of `width`, `2 * width + 1`, `floor(sqrt(n)) ^ 2`: + - * / ^ and parentheses, floor, ceil,
  /// round, sqrt, min and max. Throws ValueError for what is no expression, for unknown names (with
  /// a near miss) and for a result that is not finite.
  double value(const std::string& expression) const;
  /// Letters, digits and _, no digit first.
  static bool is_name(const std::string& text);

 private:
  friend class Expression;
  /// Its value in the innermost scope that has it; null: none has.
  const double* find(const std::string& name) const;
  const Variables* outer_;
  std::unordered_map<std::string, double> own_;
};

}  // namespace tenon::models

// A recursive-descent parser that evaluates in double precision.
#include "models/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include "base/digit.h"
#include "base/str.h"

namespace tenon::models {
namespace {

constexpr int kDeepestParentheses = 50;
constexpr const char* kFunctions[] = {"floor", "ceil", "round", "sqrt", "min", "max", "length"};
constexpr char kAll[] = "floor, ceil, round, sqrt, min, max, length";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

class Expression {
 public:
  Expression(const std::string& text, const Variables& variables)
      : text_(text), variables_(variables) {}

  double value() {
    const double out = sum();
    skip_spaces();
    if (at_ < text_.size()) refuse();
    if (!std::isfinite(out)) throw ValueError(cat("'", text_, "' is not a finite number"));
    return out;
  }

 private:
  [[noreturn]] void refuse() const {
    throw ValueError(cat(
        "'", text_, "' is neither a number nor an expression of variables, as in \"2 * width\""));
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  double sum() {
    double out = product();
    for (;;)
      if (take('+'))
        out += product();
      else if (take('-'))
        out -= product();
      else
        return out;
  }
  double product() {
    double out = power();
    for (;;)
      if (take('*'))
        out *= power();
      else if (take('/'))
        out /= power();
      else
        return out;
  }
  double power() {
    if (++depth_ > kDeepestParentheses) refuse();
    const bool negative = take('-');
    double out = atom();
    if (take('^')) out = std::pow(out, power());
    --depth_;
    return negative ? -out : out;
  }
  double atom() {
    if (take('(')) {
      const double out = sum();
      if (!take(')')) refuse();
      return out;
    }
    skip_spaces();
    if (at_ < text_.size() && is_letter(text_[at_])) return named();
    double out = 0;
    const char* end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(text_.data() + at_, end, out);
    if (error != std::errc() || at_ >= text_.size() || !(is_digit(text_[at_]) || text_[at_] == '.'))
      refuse();
    at_ = static_cast<std::size_t>(stop - text_.data());
    return out;
  }
  double named() {
    const std::string name = word();
    if (take('(')) return function(name);
    const Variables* scope = variables_.scope_of(name);
    if (scope == nullptr) unknown(name);
    if (const auto number = scope->own_.find(name); number != scope->own_.end()) {
      if (take('['))
        throw ValueError(cat("'", text_, "': '", name, "' is a number, not a list: leave out [ ]"));
      return number->second;
    }
    const std::vector<double>& list = scope->lists_.at(name);
    if (!take('['))
      throw ValueError(cat("'", text_, "': '", name, "' is a list; write ", name,
                           "[0] for its first number, or length(", name, ")"));
    const double index = sum();
    if (!take(']')) refuse();
    if (index != std::floor(index) || !(index >= 0 && index < static_cast<double>(list.size())))
      throw ValueError(cat("'", text_, "': '", name, "' has ", list.size(), " numbers, and [",
                           index, "] is out of range: the first is [0]"));
    return list[static_cast<std::size_t>(index)];
  }
  std::string word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return text_.substr(start, at_ - start);
  }
  double length() {
    skip_spaces();
    const std::string name = word();
    const Variables* scope = variables_.scope_of(name);
    if (scope == nullptr || !scope->lists_.contains(name))
      throw ValueError(cat("'", text_, "': length takes the name of a list, not '", name, "'"));
    if (!take(')')) refuse();
    return static_cast<double>(scope->lists_.at(name).size());
  }
  double function(const std::string& name) {
    bool known = false;
    for (const char* function : kFunctions) known = known || name == function;
    if (!known)
      throw ValueError(cat("'", text_, "': there is no function '", name, "' (", kAll, ")"));
    if (name == "length") return length();
    double out = sum();
    if (name == "min" || name == "max") {
      if (!take(',')) refuse();
      const double other = sum();
      out = name == "min" ? std::fmin(out, other) : std::fmax(out, other);
    } else {
      out = name == "floor"   ? std::floor(out)
            : name == "ceil"  ? std::ceil(out)
            : name == "round" ? std::round(out)
                              : std::sqrt(out);
    }
    if (!take(')')) refuse();
    return out;
  }
  [[noreturn]] void unknown(const std::string& name) const {
    std::vector<std::string> names;
    for (const Variables* scope = &variables_; scope != nullptr; scope = scope->outer_) {
      for (const auto& variable : scope->own_) names.push_back(variable.first);
      for (const auto& list : scope->lists_) names.push_back(list.first);
    }
    std::sort(names.begin(), names.end());
    const std::string near = nearest(name, names.data(), static_cast<int>(names.size()));
    constexpr std::size_t kListed = 40;
    std::string all;
    if (names.size() <= kListed)
      for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
    throw ValueError(cat("there is no variable '", name, "'",
                         near.empty() ? "" : cat("; did you mean '", near, "'?"),
                         all.empty() ? "" : cat(" (", all, ")")));
  }

  const std::string& text_;
  const Variables& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

void Variables::set(const std::string& name, double value) {
  lists_.erase(name);
  own_.insert_or_assign(name, value);
}

void Variables::set_list(const std::string& name, std::vector<double> values) {
  own_.erase(name);
  lists_.insert_or_assign(name, std::move(values));
}

double Variables::value(const std::string& expression) const {
  return Expression(expression, *this).value();
}

bool Variables::is_name(const std::string& text) {
  if (text.empty() || !is_letter(text[0])) return false;
  for (const char c : text)
    if (!is_letter(c) && !is_digit(c)) return false;
  return true;
}

const Variables* Variables::scope_of(const std::string& name) const {
  for (const Variables* scope = this; scope != nullptr; scope = scope->outer_)
    if (scope->own_.contains(name) || scope->lists_.contains(name)) return scope;
  return nullptr;
}

}  // namespace tenon::models

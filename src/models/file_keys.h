// Options of one layer in a network file, by key, checked as they are read.
//
// Every requested key is recorded, so finish() can refuse the others and suggest a similar key.
// Errors carry their line; the builder adds the file, the layer and its input shape.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tenon/nn.h>

#include "io/text/toml.h"
#include "models/expression.h"

namespace tenon::models {

/// An error in a network file, and its line.
struct FileFault {
  int line;
  std::string what;
};

constexpr std::int64_t kLargestSize = 1 << 24;

/// A number or an expression. `what` begins the message of a fault: "conv2d".
double number_of(const io::TomlValue& value, const Variables& variables, const std::string& what);
std::int64_t whole_of(const io::TomlValue& value, const Variables& variables,
                      const std::string& what, std::int64_t low = 1,
                      std::int64_t high = kLargestSize);
/// "; did you mean 'kernel'? (kernel, stride)"
std::string near_miss(const std::string& word, const std::vector<std::string>& known);

/// Throws for a key of `table` that is a near miss of the missing `key`. `what` names the table.
void refuse_misspelt(const io::TomlValue& table, const std::string& what, const std::string& key);

/// An initializer: 0.5, "kaiming_normal", { normal = 0.02 }, { kaiming_normal = 0, fan =
/// "out" }.
struct FileDraw {
  nn::Initializer make;
  bool scaled_by_fan = false;  ///< needs a weight with at least two axes
};
FileDraw draw_of(const io::TomlValue& value, const Variables& variables, const std::string& what);

class LayerKeys {
 public:
  /// `layer` is a string, the kind itself, or a table whose first key is the kind.
  LayerKeys(const io::TomlValue& layer, const Variables& variables);

  const std::string& kind() const { return kind_; }
  int line() const { return layer_.line; }
  const Variables& variables() const { return variables_; }
  const io::TomlValue* find(const std::string& key);
  /// The value of the key that names the kind; null if it is `true` or the layer is a string.
  const io::TomlValue* own();
  /// The same value; throws if there is none: "conv2d needs `what`, as in `example`".
  const io::TomlValue& own(const char* what, const char* example);

  double number(const std::string& key, double fallback, double low, double high);
  std::int64_t whole(const std::string& key, std::int64_t fallback, std::int64_t low = 0,
                     std::int64_t high = kLargestSize);
  std::int64_t own_whole(const char* what, const char* example, std::int64_t low = 1);
  bool boolean(const std::string& key, bool fallback);
  std::string word(const std::string& key, const std::vector<std::string>& choices);
  std::string text(const std::string& key);
  /// One number for all `count` axes, or a list of `count` numbers.
  std::vector<std::int64_t> axes(const std::string& key, std::size_t count, std::int64_t fallback,
                                 std::int64_t low);
  Pair pair(const std::string& key, std::int64_t fallback, std::int64_t low = 0);
  std::optional<FileDraw> draw(const std::string& key);
  /// The first key of the layer that is one of these words; "" if there is none.
  std::string first_of(const std::vector<std::string>& words) const;
  /// Throws for a missing key: with the similar key that the layer has instead, else with `what`.
  [[noreturn]] void refuse_missing(const std::string& key, const std::string& what) const;
  /// Throws for a key that no call has requested.
  void finish() const;
  [[noreturn]] void refuse(const std::string& what) const { throw FileFault{line(), what}; }

 private:
  std::string label(const std::string& key) const;
  const io::TomlValue& layer_;
  const Variables& variables_;
  std::string kind_;
  std::vector<std::string> requested_;
};

}  // namespace tenon::models

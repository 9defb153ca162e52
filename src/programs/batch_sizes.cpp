// Fits linear functions through three batch sizes, and evaluates them.
#include "programs/batch_sizes.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include <tenon/error.h>

#include "base/make_error.h"

namespace tenon {
namespace {

using io::Json;

constexpr std::int64_t kLimit = std::int64_t{1} << 62;
constexpr double kNone = 0.5;  // no whole number

class Joining {
 public:
  Joining(const std::array<Json, 3>& records, const std::array<std::int64_t, 3>& sizes)
      : records_(records), sizes_(sizes) {}
  Json run() { return joined(records_[0], records_[1], records_[2]); }

 private:
  Json joined(const Json& a, const Json& b, const Json& c) {
    if (a.is_array() && b.is_array() && c.is_array()) return joined_items(a, b, c);
    if (a.is_object() && b.is_object() && c.is_object()) return joined_members(a, b, c);
    if (a == b && a == c) return a;
    const std::array<const Json*, 3> all{&a, &b, &c};
    if (std::array<std::int64_t, 3> values{}; are(all, whole, values)) return linear(values);
    return ratio(all);
  }

  Json joined_items(const Json& a, const Json& b, const Json& c) {
    if (a.size() != b.size() || a.size() != c.size()) refuse("has another length");
    Json out = Json::array();
    for (std::size_t k = 0; k < a.size(); ++k) {
      const Place inside(place_, cat("[", k, "]"));
      out.append(joined(a[k], b[k], c[k]));
    }
    return out;
  }

  Json joined_members(const Json& a, const Json& b, const Json& c) {
    if (a.size() != b.size() || a.size() != c.size()) refuse("has other members");
    Json out = Json::object();
    for (std::size_t k = 0; k < a.size(); ++k) {
      const auto& [key, value] = a.members()[k];
      const auto &in_b = b.members()[k], &in_c = c.members()[k];
      if (in_b.first != key || in_c.first != key) refuse("has other members");
      const Place inside(place_, cat(".", key));
      out.add(key, joined(value, in_b.second, in_c.second));
    }
    return out;
  }

  // The whole number that a real one is computed from, or kNone. A divisor of a mean is a real
  // number that counts elements.
  using Whole = double (*)(double value);
  static double whole(double value) { return value; }
  static double reciprocal(double value) {
    return 1 / std::round(1 / value) == value ? std::round(1 / value) : kNone;
  }
  // Of the factor that corrects a variance.
  static double corrected(double value) {
    const double count = std::round(value / (value - 1));
    return count / (count - 1) == value ? count : kNone;
  }

  static bool are(const std::array<const Json*, 3>& numbers, Whole of,
                  std::array<std::int64_t, 3>& values) {
    for (std::size_t k = 0; k < 3; ++k) {
      if (!numbers[k]->is_number()) return false;
      const double real = of(numbers[k]->get<double>());
      if (std::trunc(real) != real || !(std::fabs(real) <= 0x1p53)) return false;
      values[k] = static_cast<std::int64_t>(real);
    }
    return true;
  }

  Json ratio(const std::array<const Json*, 3>& numbers) {
    std::array<std::int64_t, 3> counts{};
    if (are(numbers, reciprocal, counts)) return cat("1/", linear(counts));
    if (!are(numbers, corrected, counts)) refuse("differs");
    const std::string above = linear(counts);
    for (std::int64_t& count : counts) --count;
    return cat(above, "/", linear(counts));
  }

  std::string linear(const std::array<std::int64_t, 3>& values) {
    const std::int64_t step = sizes_[1] - sizes_[0], rise = values[1] - values[0];
    const std::int64_t slope = rise / step, base = values[0] - slope * sizes_[0];
    if (slope * step != rise || slope * sizes_[2] + base != values[2])
      refuse(cat("is ", values[0], ", ", values[1], " and ", values[2]).c_str());
    const std::string factor = slope == 1 ? "" : slope == -1 ? "-" : cat(slope);
    return cat(factor, "n", base > 0 ? "+" : "", base == 0 ? "" : cat(base));
  }

  // The part of the record that is being joined.
  class Place {
   public:
    Place(std::string& path, const std::string& part) : path_(path), length_(path.size()) {
      path_ += part;
    }
    ~Place() { path_.resize(length_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    std::string& path_;
    std::size_t length_;
  };

  [[noreturn]] void refuse(const char* how) const {
    throw make_error<ShapeError>(
        "save_program: the function's graph depends on the batch size in a way that a program "
        "cannot hold: ",
        place_.substr(place_.starts_with('.') ? 1 : 0), " ", how, " for batches of ", sizes_[0],
        ", ", sizes_[1], " and ", sizes_[2],
        ": save the program without batched inputs, one file for each batch size");
  }

  const std::array<Json, 3>& records_;
  const std::array<std::int64_t, 3>& sizes_;
  std::string place_{};
};

// Reads a whole number at the beginning of the text; without digits it is `otherwise`.
std::int64_t take_number(std::string_view& text, std::int64_t otherwise) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = otherwise;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec == std::errc::result_out_of_range || value < 0 || value > kLimit)
    throw Json::out_of_range("a number of elements is out of range");
  if (end.ec == std::errc()) text.remove_prefix(static_cast<std::size_t>(end.ptr - text.data()));
  return negative ? -value : value;
}

std::int64_t linear_at(std::string_view all, std::int64_t n) {
  std::string_view text = all;
  const std::int64_t slope = take_number(text, 1);
  const bool has_n = text.starts_with('n');
  if (has_n) text.remove_prefix(1);
  const bool has_sign = text.starts_with('+') || text.starts_with('-');
  const std::int64_t base = has_sign ? take_number(text, -1) : 0;
  if (!has_n || !text.empty())
    throw Json::type_error(cat("'", all.substr(0, 40), "' is no number like 4n-1"));
  std::int64_t product = 0, sum = 0;
  if (__builtin_mul_overflow(slope, n, &product) || __builtin_add_overflow(product, base, &sum) ||
      sum > kLimit || sum < -kLimit)
    throw Json::out_of_range("a number of elements is out of range");
  return sum;
}

}  // namespace

Json join_records(const std::array<Json, 3>& records, const std::array<std::int64_t, 3>& sizes) {
  return Joining(records, sizes).run();
}

std::int64_t whole_at(const Json& value, std::int64_t n) {
  if (value.is_string()) return linear_at(value.text(), n);
  const auto whole = value.get<std::int64_t>();
  if (whole > kLimit || whole < -kLimit)
    throw Json::out_of_range("a number of elements is out of range");
  return whole;
}

double real_at(const Json& value, std::int64_t n) {
  if (!value.is_string()) return value.get<double>();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
  const std::string_view text = value.text();
  if (text == "inf" || text == "-inf") return text == "inf" ? kInf : -kInf;
  if (text == "nan" || text == "-nan") return text == "nan" ? kNotANumber : -kNotANumber;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return static_cast<double>(linear_at(text, n));
  const auto below = static_cast<double>(linear_at(text.substr(slash + 1), n));
  return (slash == 1 && text[0] == '1' ? 1.0
                                       : static_cast<double>(linear_at(text.substr(0, slash), n))) /
         below;
}

}  // namespace tenon

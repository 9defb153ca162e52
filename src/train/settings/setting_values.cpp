// Parses the settings that hold a list or several values as text.
#include "train/settings/settings.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <tenon/error.h>

#include "base/str.h"
#include "io/text/numbers.h"

namespace tenon::train {
namespace {

constexpr double kMostShare = 1000;  // largest factor of the learning rate of a layer

}  // namespace

std::vector<std::pair<std::string, Precision>> parse_layer_precision(const std::string& text) {
  std::vector<std::pair<std::string, Precision>> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0)
      throw ValueError(cat("setting 'layer_precision' holds '", item,
                           "', must be LAYER=PRECISION, as in '0=fp32' or 'features.3=tf32'"));
    out.emplace_back(item.substr(0, equals), precision_from_name(item.substr(equals + 1)));
    at = end + 1;
  }
  return out;
}

std::vector<std::pair<std::string, double>> parse_rates(const std::string& text) {
  std::vector<std::pair<std::string, double>> out;
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    const std::size_t equals = item.find('=');
    double share = 0;
    const bool known = equals != std::string::npos && equals != 0 &&
                       io::parse_number(std::string_view(item).substr(equals + 1), share) &&
                       share > 0 && share <= kMostShare;
    if (!known)
      throw ValueError(
          cat("setting 'rate_of' holds '", item,
              "', must be LAYER=FACTOR with a factor of the learning rate above 0 and up to ",
              kMostShare, ", as in 'features=0.1'; to keep a layer fixed, use 'freeze'"));
    out.emplace_back(item.substr(0, equals), share);
    at = end + 1;
  }
  return out;
}

Milestones parse_milestones(const std::string& text) {
  Milestones out;
  const auto bad = [&text] {
    throw ValueError(cat("setting 'milestones' is '", text,
                         "', must be epochs in ascending order, as in '3,6', or each with a factor "
                         "of lr, as in '3=0.4,6=0.2'"));
  };
  const auto number = [&bad](const std::string& item) {
    double value = 0;
    const char* last = item.data() + item.size();
    const auto [end, error] = std::from_chars(item.data(), last, value);
    if (error != std::errc() || end != last || !(value >= 0 && value < 1e6)) bad();
    return value;
  };
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = std::min(item.find('='), item.size());
    const double epoch = number(item.substr(0, equals));
    if (!(epoch > (out.epochs.empty() ? 0 : out.epochs.back()))) bad();
    out.epochs.push_back(epoch);
    if (equals < item.size()) out.factors.push_back(number(item.substr(equals + 1)));
  }
  if (!out.factors.empty() && out.factors.size() != out.epochs.size()) bad();
  return out;
}

}  // namespace tenon::train

// Parses the values of a network's name.
#include "models/name_values.h"

#include <algorithm>
#include <charconv>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::models {

NameValues::NameValues(const std::string& model, const std::string& text,
                       const std::vector<std::string>& keys)
    : model_(model), text_(text) {
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(',', from), text.size());
    const std::string part = text.substr(from, end - from), key = part.substr(0, part.find('='));
    from = end + 1;
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      std::string all;
      for (const std::string& known : keys) all += (all.empty() ? "" : ", ") + known;
      const std::string near = nearest(key, keys.data(), static_cast<int>(keys.size()));
      throw ValueError(
          cat("model '", model, ":", text, "': '", key, "' is not a size of this network",
              near.empty() ? "" : cat("; did you mean '", near, "'?"), " (", all, ")"));
    }
    values_.emplace_back(key, part.substr(std::min(key.size() + 1, part.size())));
  }
}

const std::string* NameValues::find(const std::string& key) const {
  const std::string* found = nullptr;
  for (const auto& [name, value] : values_)
    if (name == key) found = &value;
  return found;
}

void NameValues::refuse(const std::string& key, const std::string& what) const {
  throw ValueError(cat("model '", model_, ":", text_, "': ", key, " must be ", what));
}

bool NameValues::whole(const std::string& key, std::int64_t& value) const {
  constexpr std::int64_t largest = 1 << 24;
  const std::string* text = find(key);
  if (text == nullptr) return false;
  const char* last = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), last, value);
  if (error != std::errc() || stop != last || value < 1 || value > largest)
    refuse(key, cat("a number from 1 to ", largest, ", as in ", model_, ":", key, "=4"));
  return true;
}

bool NameValues::number(const std::string& key, double low, double high, double& value) const {
  const std::string* text = find(key);
  if (text == nullptr) return false;
  const char* last = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), last, value);
  if (error != std::errc() || stop != last || !(value >= low && value <= high))
    refuse(key, cat("a number from ", low, " to ", high));
  return true;
}

bool NameValues::word(const std::string& key, const std::vector<std::string>& choices,
                      std::string& value) const {
  const std::string* text = find(key);
  if (text == nullptr) return false;
  if (std::find(choices.begin(), choices.end(), *text) == choices.end()) {
    std::string all;
    for (const std::string& known : choices) all += (all.empty() ? "" : ", ") + known;
    refuse(key, cat("one of ", all));
  }
  value = *text;
  return true;
}

}  // namespace tenon::models

// The three ways through nlohmann's parser and printer that this library goes.
//
// nlohmann's own builder looks for each key among the members before it, one by one: an object of
// 300,000 keys took eight minutes. The builder here appends members and looks for repeated keys
// once, when the object ends.
#include "io/json.h"

#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::io {
namespace {

constexpr std::size_t kDeepestJson = 512;  // copies and comparisons of values are recursive

class JsonBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit JsonBuilder(Json& root) : root_(root) {}

  bool too_deep() const { return open_.size() > kDeepestJson; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_object(std::size_t) override { return open(Json::value_t::object); }
  bool start_array(std::size_t) override { return open(Json::value_t::array); }
  bool key(string_t& text) override {
    key_ = std::move(text);
    return true;
  }
  bool end_object() override {
    join_repeated(open_.back()->get_ref<Json::object_t&>());
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    if (const auto* syntax = dynamic_cast<const Json::parse_error*>(&error)) throw *syntax;
    if (const auto* number = dynamic_cast<const Json::out_of_range*>(&error)) throw *number;
    return false;
  }

 private:
  template <class T>
  bool add(T&& value) {
    place(Json(std::forward<T>(value)));
    return true;
  }
  bool open(Json::value_t kind) {
    open_.push_back(place(Json(kind)));
    return !too_deep();
  }
  // Its place stays until the value that holds it is closed.
  Json* place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      auto& items = parent.get_ref<Json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    auto& members = parent.get_ref<Json::object_t&>();
    members.emplace_back(std::move(key_), std::move(value));
    return &members.back().second;
  }
  // Of members with one key the last gives the value, in the first's place.
  static void join_repeated(Json::object_t& object) {
    using Members = Json::object_t::Container;  // whose [] is by place
    Members& members = object;
    std::unordered_map<std::string_view, std::size_t> first;
    first.reserve(members.size());
    bool repeated = false;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto [known, is_new] = first.emplace(members[i].first, i);
      if (is_new) continue;
      repeated = true;
      members[known->second].second = members[i].second;
    }
    if (!repeated) return;
    Members kept;
    kept.reserve(first.size());
    for (std::size_t i = 0; i < members.size(); ++i)
      if (first.at(members[i].first) == i)
        kept.emplace_back(members[i].first, std::move(members[i].second));
    members = std::move(kept);
  }

  Json& root_;
  std::vector<Json*> open_;
  std::string key_;
};

// nlohmann's error for a text that nests too deeply, which is no error of its own.
[[noreturn]] void refuse_depth() {
  throw Json::parse_error::create(101, std::size_t{0}, "values stand more than 512 deep", nullptr);
}

}  // namespace

Json parse_json(std::string_view text) {
  Json out;
  JsonBuilder builder(out);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) refuse_depth();
  return out;
}

Json parse_json_or_discard(std::string_view text) {
  try {
    return parse_json(text);
  } catch (const Json::exception&) {
    return Json(Json::value_t::discarded);
  }
}

std::string json_text(const Json& json, int indent, NoUtf8 bytes) {
  return json.dump(
      indent, ' ', false,
      bytes == NoUtf8::Throws ? Json::error_handler_t::strict : Json::error_handler_t::replace);
}

}  // namespace tenon::io

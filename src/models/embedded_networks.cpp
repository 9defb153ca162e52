// Embedded files, as lines for printing and as a parsed tree for all other uses.
#include "models/embedded_networks.h"

#include <algorithm>
#include <map>
#include <mutex>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::models {
namespace {

constexpr std::string_view kVariantHeader = "[variants.", kBlockHeader = "[blocks.";

const UnpackedFile& file_of(std::string_view name) {
  static const auto* const files = new std::vector<UnpackedFile>(unpack(packed_networks));
  const std::string file_name = cat(name, ".toml");
  for (const UnpackedFile& file : *files)
    if (file.name == file_name) return file;
  throw InternalError(cat("no network file '", name, "' is embedded"));
}

}  // namespace

EmbeddedNetwork::EmbeddedNetwork(const UnpackedFile& file)
    : tree_(io::parse_toml(file.text, std::string(file.name))) {
  const std::string_view text = file.text;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines_.push_back(text.substr(at, end - at));
    at = end + 1;
  }
}

io::TomlValue EmbeddedNetwork::facts_of(const std::string& name) const {
  io::TomlValue facts;
  for (const auto& [key, value] : tree_.entries)
    if (key != "variants") facts.set(key, value);
  const io::TomlValue* variants = tree_.find("variants");
  if (variants == nullptr) return facts;
  const io::TomlValue& variant = *variants->find(name);
  if (const io::TomlValue* like = variant.find("like")) overlay(facts, *variants->find(like->text));
  overlay(facts, variant);
  return facts;
}

std::string_view EmbeddedNetwork::line(int number) const {
  const auto at = static_cast<std::size_t>(number) - 1;
  return number < 1 || at >= lines_.size() ? std::string_view() : lines_[at];
}

std::string EmbeddedNetwork::lines(int from, int to) const {
  std::string out;
  for (int number = from; number < to; ++number) out += cat(line(number), "\n");
  return out;
}

std::string EmbeddedNetwork::head_comment() const {
  int end = 1;
  while (line(end).starts_with("#")) ++end;
  return lines(1, end);
}

std::string EmbeddedNetwork::list_from(int number) const {
  int end = number;
  while (line(end) != "]") ++end;
  return lines(number, end + 1);
}

std::string EmbeddedNetwork::blocks() const {
  std::string out;
  bool within = false;
  for (const std::string_view line : lines_) {
    if (line.starts_with("[")) within = line.starts_with(kBlockHeader);
    if (within) out += cat(line, "\n");
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out.empty() ? out : "\n" + out;
}

const EmbeddedNetwork& embedded_network(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string_view, EmbeddedNetwork> parsed;
  const UnpackedFile& file = file_of(name);
  const std::lock_guard lock(mutex);
  const auto found = parsed.find(file.name);
  return found != parsed.end() ? found->second
                               : parsed.emplace(file.name, EmbeddedNetwork(file)).first->second;
}

std::vector<std::string> networks_of_file(std::string_view name) {
  std::vector<std::string> out;
  const std::string_view text = file_of(name).text;
  const std::string header = cat("\n", kVariantHeader);
  for (std::size_t at = text.find(header); at != std::string_view::npos;
       at = text.find(header, at + 1)) {
    const std::size_t start = at + header.size();
    out.emplace_back(text.substr(start, text.find(']', start) - start));
  }
  if (out.empty()) out.emplace_back(name);
  return out;
}

void overlay(io::TomlValue& base, const io::TomlValue& over) {
  for (const auto& [key, value] : over.entries) {
    const io::TomlValue* given = base.find(key);
    if (given != nullptr && given->is(io::TomlValue::Kind::Table) &&
        value.is(io::TomlValue::Kind::Table)) {
      io::TomlValue both = *given;
      overlay(both, value);
      base.set(key, std::move(both));
    } else {
      base.set(key, value);
    }
  }
}

}  // namespace tenon::models

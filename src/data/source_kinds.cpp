// The kinds of data sources: the only list of their names.
#include "data/source_kinds.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/system/registrations.h"

namespace tenon::data {
namespace {

constexpr SourceKind kSourceKinds[] = {
    {"digits", "digits[:TRAIN,TEST,SEED]", true, false, false},
    {"scenes", "scenes[:TRAIN,TEST,SEED,size=SIDE]", true, false, false},
    {"random", "random[:TRAIN,TEST,SEED,size=N,classes=N]", true, false, false},
    {"mnist", "mnist[:FOLDER]", false, true, false},
    {"cifar10", "cifar10[:FOLDER]", false, true, false},
    {"cifar100", "cifar100[:FOLDER]", false, true, false},
    {"idx", "idx:FOLDER", false, true},
    {"csv", "csv:FILE"},
    {"npy", "npy:INPUTS,TARGETS"},
    {"text", "text:FILE"},
    {"lines", "lines:FILE"},
    {"numbers", "numbers[:TRAIN,TEST,SEED]", true, false, false},
    {"pairs", "pairs:FILE"},
    {"spans", "spans:FILE"},
    {"folder", "folder:DIR"},
    {"list", "list:FILE"},
    {"shards", "shards:PATTERN"}};

// Entries and lists are never freed: whoever has one may still use it.
struct SourceRegistry {
  SourceRegistry() { lists.emplace_back(std::begin(kSourceKinds), std::end(kSourceKinds)); }
  std::mutex mutex;
  std::list<RegisteredSource> own;
  std::list<std::vector<SourceKind>> lists;  // the last one is the current one
};
SourceRegistry& source_registry() {
  static auto& registry = *new SourceRegistry;
  return registry;
}

bool is_source_name(const std::string& name) {
  return !name.empty() && name[0] >= 'a' && name[0] <= 'z' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

const SourceKind* kind_in(std::span<const SourceKind> kinds, std::string_view name) {
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const SourceKind& kind) { return name == kind.name; });
  return found == kinds.end() ? nullptr : &*found;
}

void unregister_source(const std::string& name) {
  SourceRegistry& registry = source_registry();
  const std::lock_guard lock(registry.mutex);
  registry.lists.push_back(registry.lists.back());
  std::erase_if(registry.lists.back(), [&](const SourceKind& kind) { return name == kind.name; });
}

}  // namespace

std::span<const SourceKind> source_kinds() {
  const std::lock_guard lock(source_registry().mutex);
  return source_registry().lists.back();
}

const SourceKind* source_kind(std::string_view spec) {
  return kind_in(source_kinds(), spec.substr(0, spec.find_first_of(":,")));
}

const RegisteredSource* registered_source(const std::string& name) {
  if (kind_in(source_kinds(), name) == nullptr) return nullptr;
  const std::lock_guard lock(source_registry().mutex);
  const auto& own = source_registry().own;
  const auto found = std::find_if(own.rbegin(), own.rend(), [&](const RegisteredSource& source) {
    return source.name == name;
  });
  return found == own.rend() ? nullptr : &*found;
}

void register_source(RegisteredSource source) {
  const std::string name = source.name, what = cat("data source '", name, "'");
  if (!is_source_name(name))
    throw ValueError(cat("register_source: the name is '", name,
                         "', must be lower-case letters, digits and '_', beginning with a letter"));
  if (!source.open) throw ValueError(cat("register_source: '", name, "' has no open()"));
  SourceRegistry& registry = source_registry();
  {
    const std::lock_guard lock(registry.mutex);
    if (kind_in(registry.lists.back(), name) != nullptr)
      throw ValueError(cat("register_source: there is a ", what, owner_of(what),
                           " already: choose another name"));
    const RegisteredSource& kept = registry.own.emplace_back(std::move(source));
    std::vector<SourceKind> kinds = registry.lists.back();
    kinds.push_back(
        {kept.name.c_str(), kept.usage.c_str(), kept.generated, false, kept.needs_path});
    registry.lists.push_back(std::move(kinds));
  }
  note_registration(what, [name] { unregister_source(name); });
}

}  // namespace tenon::data

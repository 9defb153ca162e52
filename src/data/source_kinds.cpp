// The kinds of data sources: the only list of their names.
#include <algorithm>
#include <iterator>
#include <string>

#include <tenon/data.h>

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

}  // namespace

std::span<const SourceKind> source_kinds() { return kSourceKinds; }

const SourceKind* source_kind(std::string_view spec) {
  const std::string_view name = spec.substr(0, spec.find_first_of(":,"));
  const auto* const found = std::find_if(std::begin(kSourceKinds), std::end(kSourceKinds),
                                         [&](const SourceKind& kind) { return name == kind.name; });
  return found == std::end(kSourceKinds) ? nullptr : found;
}

}  // namespace tenon::data

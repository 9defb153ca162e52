// What builders of layer types share.
#include "models/file_kinds.h"

#include "base/str.h"
#include "models/file_modules.h"

namespace tenon::models {

FileLayer function_of(const std::string& text, const std::function<Tensor(const Tensor&)>& function,
                      ByPlace by_place) {
  return layer_of(FileFunction(text, function), by_place);
}

void require_rank(const LayerKeys& keys, const FileArrival& at, int rank, const char* wanted) {
  if (at.x.rank() != rank)
    keys.refuse(cat(keys.kind(), " takes ", wanted, ", not ", shape_text(at.x)));
}

void draw_again(const LayerKeys& keys, const nn::ModuleBase& module, const std::string& name,
                const std::optional<FileDraw>& draw, const OptionalGenerator& generator) {
  if (!draw) return;
  for (const nn::NamedTensor& p : module.named_parameters())
    if (p.name == name) {
      set_value(p.tensor, draw->make(p.tensor.shape(), generator));
      return;
    }
  keys.refuse(cat(keys.kind(), " has no ", name, " here to begin with these values"));
}

std::string kept_name(LayerKeys& keys, const std::string& key, const FileArrival& at) {
  std::string name = keys.text(key);
  if (name.empty() || at.pass->find(name) != nullptr) return name;
  const std::vector<std::string> known = at.pass->names();
  keys.refuse(cat(key, ": no value is kept as '", name, "' before",
                  known.empty() ? cat("; { keep = \"", name, "\" } keeps what arrives there")
                                : near_miss(name, known)));
}

}  // namespace tenon::models

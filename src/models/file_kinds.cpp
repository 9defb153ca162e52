// Functions that builders of layer types share.
#include "models/file_kinds.h"

#include "base/str.h"
#include "models/file_modules.h"

namespace tenon::models {

FileLayer function_of(const std::string& text, const std::function<Tensor(const Tensor&)>& function,
                      ByPosition by_position) {
  return layer_of(FileFunction(text, function), by_position);
}

void require_rank(const LayerKeys& keys, const LayerContext& at, int rank, const char* wanted) {
  if (at.x.rank() != rank)
    keys.refuse(cat(keys.kind(), " takes ", wanted, ", not ", shape_text(at.x)));
}

void replace_initial_value(const LayerKeys& keys, const nn::ModuleBase& module,
                           const std::string& name, const std::optional<FileDraw>& draw,
                           const OptionalGenerator& generator) {
  if (!draw) return;
  for (const nn::NamedTensor& p : module.named_parameters())
    if (p.name == name) {
      set_value(p.tensor, draw->make(p.tensor.shape(), generator));
      return;
    }
  keys.refuse(cat(keys.kind(), " has no ", name, " here to initialize"));
}

std::string kept_name(LayerKeys& keys, const std::string& key, const LayerContext& at) {
  std::string name = keys.text(key);
  if (name.empty() || at.pass->find(name) != nullptr) return name;
  const std::vector<std::string> known = at.pass->names();
  keys.refuse(cat(key, ": no value is kept as '", name, "' before",
                  known.empty() ? cat("; { keep = \"", name, "\" } keeps its input under this name")
                                : near_miss(name, known)));
}

}  // namespace tenon::models

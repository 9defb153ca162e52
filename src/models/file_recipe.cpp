// Reads a recipe from TOML.
#include "models/file_recipe.h"

#include <variant>

#include <tenon/error.h>

#include "base/str.h"
#include "models/file_keys.h"

namespace tenon::models {
namespace {

using Member =
    std::variant<std::string Recipe::*, int Recipe::*, std::int64_t Recipe::*, double Recipe::*>;
struct RecipeField {
  const char* name;
  Member member;
};
constexpr RecipeField kRecipe[] = {
    {"data", &Recipe::data},
    {"epochs", &Recipe::epochs},
    {"batch", &Recipe::batch},
    {"optimizer", &Recipe::optimizer},
    {"lr", &Recipe::lr},
    {"momentum", &Recipe::momentum},
    {"weight_decay", &Recipe::weight_decay},
    {"beta2", &Recipe::beta2},
    {"eps", &Recipe::eps},
    {"schedule", &Recipe::schedule},
    {"milestones", &Recipe::milestones},
    {"warmup", &Recipe::warmup},
    {"clip_norm", &Recipe::clip_norm},
    {"label_smoothing", &Recipe::label_smoothing},
    {"input_mean", &Recipe::input_mean},
    {"input_std", &Recipe::input_std},
    {"augment", &Recipe::augment},
    {"normalize", &Recipe::normalize},
};

}  // namespace

Recipe recipe_of(const io::TomlValue& table, const Variables& variables) {
  Recipe out;
  std::vector<std::string> names;
  for (const RecipeField& field : kRecipe) names.emplace_back(field.name);
  for (const auto& [key, value] : table.entries) {
    const RecipeField* found = nullptr;
    for (const RecipeField& field : kRecipe)
      if (key == field.name) found = &field;
    if (found == nullptr)
      throw FileFault{value.line, cat("a recipe has no '", key, "'",
                                      key == "layers" || key == "init" || key == "freeze"
                                          ? std::string(": write it above the line [recipe]")
                                          : near_miss(key, names))};
    std::visit(
        [&, &name = key, &given = value](auto member) {
          auto& to = out.*member;
          const std::string what = cat("recipe: ", name);
          if constexpr (std::is_same_v<decltype(to), std::string&>) {
            if (!given.is(io::TomlValue::Kind::String))
              throw FileFault{given.line,
                              cat(what, " is ", given.kind_name(), ", must be a string")};
            to = given.text;
          } else if constexpr (std::is_same_v<decltype(to), double&>) {
            to = number_of(given, variables, what);
          } else {
            to = static_cast<std::remove_reference_t<decltype(to)>>(
                whole_of(given, variables, what, 1, kLargestSize));
          }
        },
        found->member);
  }
  return out;
}

}  // namespace tenon::models

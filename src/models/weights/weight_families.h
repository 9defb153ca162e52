// Weight families: a table that maps the tensor names of another library's networks to Tenon's.
//
// A family is recognised by one tensor that its files contain. Its rules are tried in order; the
// first that matches a name is applied. A name without a matching rule is kept.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tenon::models {

enum class WeightChange {
  None,
  Transposed,  ///< a matrix kept the other way round
  LeftOut,     ///< no weight; `to` says what it is
  SameAs,      ///< tied: `to` is the tensor of the network that it must be equal to
  OneTasks,    ///< of one task's network: left out where the network is another task's
};

/// {a} in `from` is a number, an asterisk at its end any rest; {a}, {a+1} and the asterisk in `to`
/// stand for them.
struct RenameRule {
  std::string_view from, to;
  WeightChange change = WeightChange::None;
};

struct WeightFamily {
  std::string_view name;
  std::string_view sign;                                        ///< a name that its files have
  enum class SignShape { Any, Tall, Wide, OneRow } sign_shape;  ///< and how that matrix lies
  std::span<const RenameRule> rules;
  /// What images were scaled by when these were learnt, as the setting 'normalize' says it; empty
  /// where the family is not about images.
  std::string_view normalize{};
  /// Why Tenon has no network of this family, as the end of a sentence; empty: it has one.
  std::string_view why_not{};
};

/// The first that fits is the file's.
std::span<const WeightFamily> weight_families();

/// What frameworks put in front of all names of a network when they wrap it or save it among other
/// things: "module.", "state_dict.".
std::span<const std::string_view> weight_wrappers();

/// What wrappers of a part of a network put into the paths of its tensors: "_orig_mod",
/// "_fsdp_wrapped_module".
std::span<const std::string_view> weight_path_wrappers();

/// What the rule makes of a name; nothing when it is not for that name.
std::optional<std::string> renamed(const RenameRule& rule, std::string_view name);

}  // namespace tenon::models

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
  Transposed,  ///< the matrix is stored transposed
  LeftOut,     ///< not a weight; `to` says what it is
  SameAs,      ///< tied: must be equal to the network's tensor `to`
  OneTasks,    ///< of a task's head: left out if the network has another task
};

/// A renaming. In `from`, {a} matches a number and an asterisk at the end matches any rest. In
/// `to`, {a}, {a+1} and the asterisk are replaced by the matched text.
struct RenameRule {
  std::string_view from, to;
  WeightChange change = WeightChange::None;
};

struct WeightFamily {
  std::string_view name;
  std::string_view sign;  ///< a tensor name that identifies the family
  enum class SignShape { Any, Tall, Wide, OneRow } sign_shape;  ///< required shape of that matrix
  std::span<const RenameRule> rules;
  /// Normalization of images in pre-training, as the setting 'normalize' writes it; empty if the
  /// family does not take images.
  std::string_view normalize{};
  /// Why Tenon does not support the family, as the end of a sentence; empty: supported.
  std::string_view why_not{};
};

/// All families. A file belongs to the first that matches.
std::span<const WeightFamily> weight_families();

/// Prefixes that frameworks add to all names of a network that they wrap, or save with other data:
/// "module.", "state_dict.".
std::span<const std::string_view> weight_wrappers();

/// Path components that wrappers of a part of a network add to its tensors' names: "_orig_mod",
/// "_fsdp_wrapped_module".
std::span<const std::string_view> weight_path_wrappers();

/// The new name; nullopt if the rule does not match the name.
std::optional<std::string> renamed(const RenameRule& rule, std::string_view name);

}  // namespace tenon::models

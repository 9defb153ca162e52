// A network's description: found by name or parsed from TOML once, used any number of times.
#pragma once

#include <memory>
#include <string>

#include <tenon/models.h>

#include "io/text/toml.h"

namespace tenon::models {

/// The description that models::info() and models::create() use. Copies share it, and any number of
/// threads may use it. Later changes of the file that it was read from have no effect.
class Network {
 public:
  /// Finds a network by a name that models::create() takes. Throws like models::info().
  explicit Network(const std::string& name);
  /// Throws FormatError.
  explicit Network(NetworkFile file);

  const Info& info() const;
  /// Like models::create().
  nn::AnyModule create(const Options& options) const;
  /// Whether this describes the network of the TOML `text`, or, if `text` is empty, the built-in
  /// network `name`.
  bool is_of(const std::string& name, const std::string& text) const;
  /// The table [recipe] of a network file; null without one.
  const io::TomlValue* recipe() const;

 private:
  struct Described;
  std::shared_ptr<const Described> described_;
};

}  // namespace tenon::models

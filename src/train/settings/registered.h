// What runs use of the registries, and the plugins that a run needs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tenon/registered.h>

namespace tenon::train {

/// The registered loss for a network. Throws ValueError that suggests a similar name.
nn::Loss registered_loss(const std::string& name, const TaskNetwork& network);
/// Throws the same if there is no such loss.
void check_loss(const std::string& name);
/// Throws ValueError if the setting "callbacks" names a callback that is not registered.
void check_callbacks(const std::string& names);
/// The callbacks that the setting names.
std::vector<std::shared_ptr<Callback>> make_callbacks(const Settings& settings,
                                                      const std::string& dir);

/// The loaded plugins as the setting "plugins" holds them: "NAME VERSION DIGEST FILE, …".
std::string plugins_text();
/// Throws ValueError for a plugin of the setting that is not loaded. Warns if it was built again.
void require_plugins(const std::string& text);

}  // namespace tenon::train

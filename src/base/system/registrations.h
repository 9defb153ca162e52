// What programs and plugins register by name: who did it, and how it is undone if a plugin fails.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tenon {

/// Reports that `what` ("optimizer 'mine'") has been registered. While a plugin's entry runs in
/// this thread, the plugin owns it, and `undo` removes it again if the entry fails.
void note_registration(const std::string& what, std::function<void()> undo);
/// " of the plugin 'mine'" for what a plugin has registered, otherwise "".
std::string owner_of(const std::string& what);

/// While it lives, what this thread registers belongs to the plugin. Unless keep() is called, its
/// end undoes the registrations, the last one first.
class PluginRegistrations {
 public:
  explicit PluginRegistrations(std::string plugin);
  ~PluginRegistrations();
  PluginRegistrations(const PluginRegistrations&) = delete;
  PluginRegistrations& operator=(const PluginRegistrations&) = delete;
  /// Keeps the registrations and returns what was registered.
  std::vector<std::string> keep();

 private:
  friend void note_registration(const std::string& what, std::function<void()> undo);
  struct Entry {
    std::string what;
    std::function<void()> undo;
  };
  std::string plugin_;
  std::vector<Entry> entries_{};
};

}  // namespace tenon

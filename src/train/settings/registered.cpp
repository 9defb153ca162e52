// The registries of losses and callbacks, and the record of plugins.
#include "train/settings/registered.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <utility>

#include <tenon/error.h>
#include <tenon/log.h>
#include <tenon/plugin.h>
#include <tenon/runs.h>
#include <tenon/task.h>

#include "base/make_error.h"
#include "base/system/log.h"
#include "base/system/registrations.h"

namespace tenon::train {
namespace {

// Makers by name.
template <class Maker>
class Makers {
 public:
  explicit Makers(const char* kind) : kind_(kind) {}

  void add(const std::string& name, Maker make) {
    const std::string what = cat(kind_, " '", name, "'");
    if (name.empty() ||
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
      throw ValueError(cat("register_", kind_, ": the name '", name,
                           "' must be lower-case letters, digits and underscores"));
    if (!make) throw ValueError(cat("register_", kind_, ": the function of '", name, "' is empty"));
    {
      const std::lock_guard lock(mutex_);
      if (position(name) != makers_.end())
        throw ValueError(cat("register_", kind_, ": there is a ", what, owner_of(what),
                             " already: choose another name"));
      makers_.emplace_back(name, std::move(make));
    }
    note_registration(what, [this, name] {
      const std::lock_guard lock(mutex_);
      makers_.erase(position(name));
    });
  }

  Maker find(const std::string& name) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = position(name); found != makers_.end()) return found->second;
    }
    const std::vector<std::string> known = names();
    const std::string near = nearest(name, known.data(), static_cast<int>(known.size()));
    throw ValueError(cat("there is no ", kind_, " '", name, "'",
                         near.empty() ? "" : cat("; did you mean '", near, "'?"),
                         ": a program or plugin adds its own with register_", kind_, "()"));
  }

  std::vector<std::string> names() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (const auto& [name, make] : makers_) out.push_back(name);
    return out;
  }

 private:
  auto position(const std::string& name) {
    return std::find_if(makers_.begin(), makers_.end(),
                        [&](const auto& each) { return each.first == name; });
  }
  const char* kind_;
  std::mutex mutex_;
  std::vector<std::pair<std::string, Maker>> makers_{};
};

// Never destroyed: threads may still ask while the program ends.
Makers<LossMaker>& losses() {
  static auto& makers = *new Makers<LossMaker>("loss");
  return makers;
}
Makers<CallbackMaker>& callbacks() {
  static auto& makers = *new Makers<CallbackMaker>("callback");
  return makers;
}

std::vector<std::string> listed_names(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ',');) out.push_back(name);
  return out;
}

// The parts of one plugin in the setting.
struct NeededPlugin {
  std::string name, version, digest, file;
};
NeededPlugin needed_plugin(const std::string& text) {
  NeededPlugin out;
  std::istringstream in(text);
  in >> out.name >> out.version >> out.digest >> std::ws;
  std::getline(in, out.file);
  if (out.file.empty())
    throw ValueError(cat("setting 'plugins' is '", text,
                         "', must be NAME VERSION DIGEST FILE, as a run writes it"));
  return out;
}

// Words of the setting: without separators.
std::string as_word(std::string text, bool with_spaces) {
  for (char& c : text)
    if (c == ',' || (c == ' ' && !with_spaces)) c = '_';
  return text.empty() ? "-" : text;
}

}  // namespace

void register_loss(const std::string& name, LossMaker make) { losses().add(name, std::move(make)); }
std::vector<std::string> loss_names() { return losses().names(); }
LossMaker find_loss(const std::string& name) { return losses().find(name); }

void register_callback(const std::string& name, CallbackMaker make) {
  callbacks().add(name, std::move(make));
}
std::vector<std::string> callback_names() { return callbacks().names(); }

void check_callbacks(const std::string& names) {
  for (const std::string& name : listed_names(names)) (void)callbacks().find(name);
}

std::vector<std::shared_ptr<Callback>> make_callbacks(const Settings& settings,
                                                      const std::string& dir) {
  std::vector<std::shared_ptr<Callback>> out;
  for (const std::string& name : listed_names(settings.callbacks)) {
    out.push_back(callbacks().find(name)(settings, dir));
    if (out.back() == nullptr)
      throw ValueError(cat("the registered callback '", name, "' made no callback"));
  }
  return out;
}

std::string plugins_text() {
  std::string out;
  for (const PluginInfo& plugin : loaded_plugins())
    out += cat(out.empty() ? "" : ", ", plugin.name, " ", as_word(plugin.version, false), " ",
               plugin.digest, " ",
               as_word(std::filesystem::path(plugin.path).filename().string(), true));
  return out;
}

void require_plugins(const std::string& text) {
  const std::vector<PluginInfo> loaded = loaded_plugins();
  for (const std::string& each : listed_names(text)) {
    const NeededPlugin needed = needed_plugin(each);
    const auto found = std::find_if(loaded.begin(), loaded.end(), [&](const PluginInfo& plugin) {
      return plugin.name == needed.name;
    });
    if (found == loaded.end())
      throw ValueError(cat("the run needs the plugin '", needed.name, "' ", needed.version, " (",
                           needed.file,
                           "), which is not loaded: load it first, as in 'tenon --plugin ",
                           needed.file, "' before the command"));
    if (found->digest != needed.digest)
      log_message(LogLevel::Warning,
                  cat("the run was made with another build of the plugin '", needed.name, "' (",
                      needed.version, "; loaded is ", found->version, ")"));
  }
}

}  // namespace tenon::train

// The registries of losses and callbacks, and the record of plugins.
#include "train/settings/registered.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
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

// Makers by name; which type they have, the kind decides.
class Makers {
 public:
  explicit Makers(const char* kind) : kind_(kind) {}
  void add(const std::string& name, bool is_empty, std::shared_ptr<const void> make);
  std::shared_ptr<const void> find(const std::string& name);
  std::vector<std::string> names();

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const void>>;
  std::vector<Entry>::iterator position(const std::string& name) {
    return std::find_if(makers_.begin(), makers_.end(),
                        [&](const Entry& each) { return each.first == name; });
  }
  const char* kind_;
  std::mutex mutex_;
  std::vector<Entry> makers_{};
};

void Makers::add(const std::string& name, bool is_empty, std::shared_ptr<const void> make) {
  const std::string what = cat(kind_, " '", name, "'");
  if (name.empty() ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    throw ValueError(cat("register_", kind_, ": the name '", name,
                         "' must be lower-case letters, digits and underscores"));
  if (is_empty)
    throw ValueError(cat("register_", kind_, ": the function of '", name, "' is empty"));
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

std::shared_ptr<const void> Makers::find(const std::string& name) {
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

std::vector<std::string> Makers::names() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const Entry& entry : makers_) out.push_back(entry.first);
  return out;
}

// Never destroyed: threads may still ask while the program ends.
Makers& losses() {
  static auto& makers = *new Makers("loss");
  return makers;
}
Makers& callbacks() {
  static auto& makers = *new Makers("callback");
  return makers;
}

// The part up to the separator, which is removed with it.
std::string take_part(std::string& text, char separator) {
  while (text.starts_with(' ')) text.erase(0, 1);
  const std::size_t end = std::min(text.find(separator), text.size());
  std::string part = text.substr(0, end);
  text.erase(0, end + 1);
  return part;
}

std::vector<std::string> listed_names(std::string text) {
  std::vector<std::string> out;
  while (!text.empty()) out.push_back(take_part(text, ','));
  return out;
}

// The parts of one plugin in the setting.
struct NeededPlugin {
  std::string name, version, digest, file;
};
NeededPlugin needed_plugin(const std::string& text) {
  NeededPlugin out;
  out.file = text;
  for (std::string* part : {&out.name, &out.version, &out.digest}) *part = take_part(out.file, ' ');
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

void register_loss(const std::string& name, LossMaker make) {
  const bool is_empty = !make;
  losses().add(name, is_empty, std::make_shared<const LossMaker>(std::move(make)));
}
std::vector<std::string> loss_names() { return losses().names(); }
nn::Loss registered_loss(const std::string& name, const TaskNetwork& network) {
  return (*std::static_pointer_cast<const LossMaker>(losses().find(name)))(network);
}
void check_loss(const std::string& name) { (void)losses().find(name); }

void register_callback(const std::string& name, CallbackMaker make) {
  const bool is_empty = !make;
  callbacks().add(name, is_empty, std::make_shared<const CallbackMaker>(std::move(make)));
}
std::vector<std::string> callback_names() { return callbacks().names(); }

void check_callbacks(const std::string& names) {
  for (const std::string& name : listed_names(names)) (void)callbacks().find(name);
}

std::vector<std::shared_ptr<Callback>> make_callbacks(const Settings& settings,
                                                      const std::string& dir) {
  std::vector<std::shared_ptr<Callback>> out;
  for (const std::string& name : listed_names(settings.callbacks)) {
    out.push_back(
        (*std::static_pointer_cast<const CallbackMaker>(callbacks().find(name)))(settings, dir));
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

// Loading of plugins, and the record of what they registered.
//
// The file is read before it is linked: linking runs its constructors, and a plugin of another
// version must not run at all.
#include <tenon/plugin.h>

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include <tenon/error.h>

#include "base/digest.h"
#include "base/make_error.h"
#include "base/system/registrations.h"

namespace tenon {
namespace {

struct PluginTable {
  std::mutex mutex;
  std::vector<PluginInfo> loaded;
  std::map<std::string, std::string> owners;  // what was registered, and the plugin's name
};
// Never destroyed: threads may still ask while the program ends.
PluginTable& plugin_table() {
  static auto& table = *new PluginTable;
  return table;
}

thread_local PluginRegistrations* t_registrations = nullptr;

std::string bytes_of_plugin(const std::string& path) {
  std::string bytes;
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file != nullptr) {
    char part[65536];
    for (std::size_t n; (n = std::fread(part, 1, sizeof part, file)) != 0;) bytes.append(part, n);
    std::fclose(file);
  }
  if (bytes.empty()) throw make_error<IoError>(FileName{path}, ": the plugin cannot be read");
  return bytes;
}

struct Handshake {
  std::string build, name, version;
};

// The text that TENON_PLUGIN leaves in the file. It is joined here, so that a file which contains
// this library does not contain it.
Handshake handshake_in(const std::string& bytes, const std::string& path) {
  const std::string mark = std::string("tenon-plugin-") + "handshake|";
  const std::size_t begin = bytes.find(mark);
  const std::size_t zero = bytes.find('\0', std::min(begin, bytes.size()));
  const std::size_t end = zero == std::string::npos ? 0 : zero;
  std::vector<std::string> parts;
  for (std::size_t at = begin; at < end && parts.size() < 4;) {
    const std::size_t bar = std::min(bytes.find('|', at), end);
    parts.push_back(bytes.substr(at, bar - at));
    at = bar + 1;
  }
  if (parts.size() != 4)
    throw make_error<FormatError>(FileName{path},
                                  " is no plugin of Tenon: it lacks TENON_PLUGIN(name, version)");
  return {parts[1], parts[2], parts[3]};
}

void check_build(const Handshake& found, const std::string& path) {
  if (found.build == TENON_PLUGIN_BUILD) return;
  throw make_error<NotSupported>(FileName{path}, ": the plugin '", found.name,
                                 "' was built for Tenon ", found.build, ", this is Tenon ",
                                 TENON_PLUGIN_BUILD,
                                 ": build the plugin again with the headers of this version");
}

[[noreturn]] void refuse_link(const std::string& path) {
  const char* why = ::dlerror();
  throw make_error<IoError>(
      FileName{path}, ": the plugin cannot be linked: ", why != nullptr ? why : "unknown reason",
      ": build it with the headers of this version, and link it with the "
      "libraries that it uses, except Tenon's");
}

using PluginEntry = void (*)();

PluginEntry link_plugin(const std::string& path) {
  // Without a slash the system would search its own folders.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) refuse_link(path);
  void* const entry = ::dlsym(handle, "tenon_plugin_entry");
  if (entry == nullptr) refuse_link(path);
  return reinterpret_cast<PluginEntry>(entry);
}

// Runs the entry. If it throws, its registrations are removed.
std::vector<std::string> run_entry(PluginEntry entry, const std::string& name,
                                   const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw make_error<ValueError>(FileName{path}, ": the plugin '", name,
                                 "' failed to start: ", why);
  };
  PluginRegistrations registrations(name);
  try {
    entry();
  } catch (const std::exception& error) {
    refuse(error.what());
  } catch (...) {
    refuse("an exception that is no std::exception");
  }
  return registrations.keep();
}

}  // namespace

PluginInfo load_plugin(const std::string& path) {
  const std::string bytes = bytes_of_plugin(path);
  const Handshake found = handshake_in(bytes, path);
  check_build(found, path);
  Digester digester;
  digester.add(bytes);
  PluginInfo info{found.name, found.version, path, digester.result().hex()};
  for (const PluginInfo& other : loaded_plugins()) {
    if (other.name != info.name) continue;
    if (other.digest == info.digest) return other;
    throw make_error<ValueError>(FileName{path}, ": a plugin '", info.name, "' was loaded from ",
                                 other.path,
                                 " already: load one of them, or give one another name");
  }
  info.added = run_entry(link_plugin(path), info.name, path);
  const std::lock_guard lock(plugin_table().mutex);
  plugin_table().loaded.push_back(info);
  return info;
}

std::vector<PluginInfo> loaded_plugins() {
  const std::lock_guard lock(plugin_table().mutex);
  return plugin_table().loaded;
}

void note_registration(const std::string& what, std::function<void()> undo) {
  if (t_registrations == nullptr) return;
  t_registrations->entries_.push_back({what, std::move(undo)});
  const std::lock_guard lock(plugin_table().mutex);
  plugin_table().owners[what] = t_registrations->plugin_;
}

std::string owner_of(const std::string& what) {
  const std::lock_guard lock(plugin_table().mutex);
  const auto found = plugin_table().owners.find(what);
  return found == plugin_table().owners.end() ? "" : cat(" of the plugin '", found->second, "'");
}

PluginRegistrations::PluginRegistrations(std::string plugin) : plugin_(std::move(plugin)) {
  t_registrations = this;
}

PluginRegistrations::~PluginRegistrations() {
  t_registrations = nullptr;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    entry->undo();
    const std::lock_guard lock(plugin_table().mutex);
    plugin_table().owners.erase(entry->what);
  }
}

std::vector<std::string> PluginRegistrations::keep() {
  std::vector<std::string> out;
  for (const Entry& entry : entries_) out.push_back(entry.what);
  entries_.clear();
  return out;
}

}  // namespace tenon

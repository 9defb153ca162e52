// Plugins: shared objects that add datasets, transforms, networks, losses, optimizers, schedules,
// initializers, tasks and callbacks by name, for programs and for `tenon --plugin`
// (docs/plugins.md).
#pragma once

#include <string>
#include <vector>

#include <tenon/export.h>
#include <tenon/version.h>

/// Implementation.
/// @{
#define TENON_PLUGIN_TEXT_OF(value) #value
#define TENON_PLUGIN_TEXT(value) TENON_PLUGIN_TEXT_OF(value)
#if defined(_GLIBCXX_DEBUG)
#define TENON_PLUGIN_CHECKED "-checked"
#else
#define TENON_PLUGIN_CHECKED ""
#endif
#if defined(_LIBCPP_VERSION)
#define TENON_PLUGIN_LIBRARY "libc++"
#elif defined(_GLIBCXX_USE_CXX11_ABI)
#define TENON_PLUGIN_LIBRARY "libstdc++" TENON_PLUGIN_TEXT(_GLIBCXX_USE_CXX11_ABI)
#else
#define TENON_PLUGIN_LIBRARY "other"
#endif
/// @}
/// The version and the binary interface that a plugin is built for. Only a library with the same
/// text loads the plugin.
#define TENON_PLUGIN_BUILD                                               \
  TENON_PLUGIN_TEXT(TENON_VERSION_MAJOR)                                 \
  "." TENON_PLUGIN_TEXT(TENON_VERSION_MINOR) "." TENON_PLUGIN_TEXT(      \
      TENON_VERSION_PATCH) " " TENON_PLUGIN_LIBRARY TENON_PLUGIN_CHECKED \
                           " " TENON_PLUGIN_TEXT(__SIZEOF_POINTER__)

/// Declares the entry of a plugin; the body that follows registers what the plugin adds. `name` is
/// an identifier and `version` a string. Once in a shared object:
///
/// @code
/// TENON_PLUGIN(mine, "1.0") {
///   tenon::optim::register_optimizer("mine", …);
/// }
/// @endcode
///
/// If the body throws, the plugin is refused and everything that it had registered is removed.
#define TENON_PLUGIN(name, version)                                                  \
  extern "C" {                                                                       \
  __attribute__((visibility("default"))) extern const char tenon_plugin_handshake[]; \
  __attribute__((used)) const char tenon_plugin_handshake[] =                        \
      "tenon-plugin-handshake|" TENON_PLUGIN_BUILD "|" #name "|" version;            \
  __attribute__((visibility("default"))) void tenon_plugin_entry();                  \
  }                                                                                  \
  void tenon_plugin_entry()

namespace tenon {

/// A plugin that was loaded.
struct PluginInfo {
  std::string name;                  ///< The name in TENON_PLUGIN.
  std::string version;               ///< Its version.
  std::string path;                  ///< The file.
  std::string digest;                ///< Identifies the content of the file: 32 digits.
  std::vector<std::string> added{};  ///< What it registered: "optimizer 'mine'".
};

/// Loads a plugin, which stays loaded until the program ends. Before any code of the file runs, its
/// version and binary interface are compared with those of this library. A plugin that was loaded
/// before from the same content is returned again.
///
/// Throws IoError if the file cannot be read or linked, FormatError if it is no plugin,
/// NotSupported if it was built for another version or binary interface, and ValueError for a name
/// that another plugin has, or if its entry throws: a name that is taken, for example. Nothing is
/// then registered. Not while another thread trains or registers.
TENON_API PluginInfo load_plugin(const std::string& path);
/// The plugins that were loaded, in order.
TENON_API std::vector<PluginInfo> loaded_plugins();

}  // namespace tenon

// Network files: reads them, and builds or describes the network.
#include "models/network_file.h"

#include <utility>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/shapes_only.h>

#include "base/make_error.h"
#include "models/network_builder.h"

namespace tenon::models {
namespace {

using io::TomlValue;

constexpr std::uint64_t kMostText = 4 << 20;

// The facts of a network; builds the network without memory to check it.
Info checked_info(const TomlValue& tree, const std::string& source, const Options& options) {
  const ShapesOnly scope;
  NetworkBuilder builder(tree, source, options);
  Info info = builder.info();
  info.parameters = builder.build().parameter_count();
  return info;
}

}  // namespace

bool is_network_file(const std::string& name) { return name.ends_with(".toml"); }

NetworkFile read_network(const std::string& path) { return {path, io::read_file(path, kMostText)}; }

nn::AnyModule network_of(const TomlValue& keys, const std::string& source,
                         const OptionalGenerator& generator) {
  const Options options{.generator = generator};
  return NetworkBuilder(keys, source, options).build();
}

namespace {

void require_file_takes(const NetworkFile& file, const Options& options) {
  if (options.classes < 0)
    throw make_error<ValueError>("model '", FileName{file.path}, "': ", options.classes,
                                 " classes; at least 1 is needed");
  if (!options.activation.empty())
    throw make_error<ValueError>(
        "model '", FileName{file.path},
        "' has its own activations: leave 'activation' out, and change the file");
  if (!options.head.empty())
    throw make_error<ValueError>("model '", FileName{file.path},
                                 "' does not support 'head': change the last layers of the file");
}

// Draws no random number before the whole file has been checked.
nn::AnyModule built(const TomlValue& tree, const NetworkFile& file, const Options& options,
                    bool is_checked) {
  if (!is_checked && !ShapesOnly::is_on()) (void)checked_info(tree, file.path, options);
  return NetworkBuilder(tree, file.path, options).build();
}

}  // namespace

nn::AnyModule create(const NetworkFile& file, const Options& options) {
  require_file_takes(file, options);
  return built(io::parse_toml(file.text, file.path), file, options, false);
}

ParsedNetwork parse_network(NetworkFile file) {
  TomlValue tree = io::parse_toml(file.text, file.path);
  Info info = checked_info(tree, file.path, {});
  return {std::move(file), std::move(tree), std::move(info)};
}

nn::AnyModule create(const ParsedNetwork& network, const Options& options) {
  require_file_takes(network.file, options);
  const bool is_checked = options.classes == 0 || options.classes == network.info.classes;
  return built(network.tree, network.file, options, is_checked);
}

Info info(const NetworkFile& file) {
  return checked_info(io::parse_toml(file.text, file.path), file.path, {});
}

}  // namespace tenon::models

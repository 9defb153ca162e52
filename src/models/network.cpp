// Finds networks by name, and builds them.
#include "models/network.h"

#include <optional>
#include <utility>

#include "models/network_file.h"

namespace tenon::models {

struct Network::Described {
  std::string name;  // of list(), or the path of the file
  Info info;
  std::optional<ParsedNetwork> file{};  // empty: `name` is one of list()
};

Network::Network(const std::string& name) {
  if (is_network_file(name))
    *this = Network(read_network(name));
  else
    described_ = std::make_shared<const Described>(Described{name, models::info(name)});
}

Network::Network(NetworkFile file) {
  ParsedNetwork read = parse_network(std::move(file));
  described_ =
      std::make_shared<const Described>(Described{read.file.path, read.info, std::move(read)});
}

const Info& Network::info() const { return described_->info; }

nn::AnyModule Network::create(const Options& options) const {
  return described_->file ? models::create(*described_->file, options)
                          : models::create(described_->name, options);
}

bool Network::is_of(const std::string& name, const std::string& text) const {
  if (name != described_->name) return false;
  return described_->file ? described_->file->file.text == text : text.empty();
}

const io::TomlValue* Network::recipe() const {
  return described_->file ? described_->file->tree.find("recipe") : nullptr;
}

}  // namespace tenon::models

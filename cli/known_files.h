// Files that `tenon data fetch` can download: their URLs, and the checksums or shapes that verify
// them.
#pragma once

#include <tenon/shape.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::cli {

struct KnownFile {
  const char* name;
  const char* sum;  ///< SHA-256
  Shape shape{};    ///< shape of the values if the checksum covers values; []: it covers the file's
                    ///< bytes
};

struct Unpacked {
  const char* name;
  std::uint64_t bytes;
};

/// A data set, or a network's weights and its tokenizer.
struct KnownSet {
  const char *name, *title, *size;
  const char* model;  ///< the network that learns it, or whose weights they are
  std::vector<std::string> mirrors;
  std::vector<KnownFile> files;
  std::vector<Unpacked> unpacked;  ///< unpacked from an archive, which is then removed
};

const std::vector<KnownSet>& known_sets();
const std::vector<KnownSet>& known_weights();

}  // namespace tenon::cli

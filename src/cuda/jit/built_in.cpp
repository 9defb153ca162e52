// Reads and writes the store of built-in kernels.
#include "cuda/jit/built_in.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <map>

#include <tenon/error.h>

#include "base/str.h"
#include "base/system/env.h"
#include "base/thread_pool.h"
#include "cuda/jit/embedded.h"
#include "cuda/jit/nvrtc.h"

namespace tenon::cuda {
namespace {

constexpr char kOption[] = "--gpu-architecture=";
constexpr char kPtxOption[] = "--gpu-architecture=compute_80";

struct StoreHead {
  char magic[8] = {'T', 'N', 'S', 'T', 'O', 'R', 'E', '2'};
  std::uint32_t toolkit = 0, sets = 0, entries = 0, unused = 0;
};
struct SetHead {
  char option[32] = {};
};
struct Entry {
  Digest key;
  std::uint32_t set = 0;
  std::uint32_t offset = 0, packed = 0, bytes = 0;  // of the image, from the end of the index
};

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
T read(std::string_view bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

// The parts of a store; all empty if the bytes are not a store.
struct StoreParts {
  explicit StoreParts(std::string_view store) {
    const StoreHead wanted;
    if (store.size() < sizeof head) return;
    std::memcpy(&head, store.data(), sizeof head);
    const std::size_t before = sizeof head + head.sets * sizeof(SetHead),
                      index_bytes = head.entries * sizeof(Entry);
    const bool whole = std::memcmp(head.magic, wanted.magic, sizeof head.magic) == 0 &&
                       before + index_bytes <= store.size();
    if (!whole) {
      head = {};
      return;
    }
    sets = store.substr(sizeof head, head.sets * sizeof(SetHead));
    index = store.substr(before, index_bytes);
    images = store.substr(before + index_bytes);
  }
  StoreHead head;
  std::string_view sets, index, images;
};

std::string option_of(const StoreParts& parts, std::size_t set) {
  const auto head = read<SetHead>(parts.sets, set);
  return {head.option, strnlen(head.option, sizeof head.option)};
}

std::string deflated(std::string_view image) {
  uLongf bytes = compressBound(static_cast<uLong>(image.size()));
  std::string out(bytes, '\0');
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &bytes,
                reinterpret_cast<const Bytef*>(image.data()), static_cast<uLong>(image.size()),
                Z_BEST_COMPRESSION) != Z_OK)
    throw MemoryError("out of memory while compressing kernels");
  out.resize(bytes);
  return out;
}

// If the store is damaged, the kernel counts as missing.
std::string inflated(const StoreParts& parts, const Entry& entry) {
  std::string out(entry.bytes, '\0');
  uLongf bytes = entry.bytes;
  if (std::size_t{entry.offset} + entry.packed > parts.images.size() ||
      uncompress(reinterpret_cast<Bytef*>(out.data()), &bytes,
                 reinterpret_cast<const Bytef*>(parts.images.data()) + entry.offset,
                 entry.packed) != Z_OK ||
      bytes != entry.bytes)
    return {};
  return out;
}

std::string find(const StoreParts& parts, const Digest& key) {
  std::size_t low = 0, high = parts.head.entries;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    const Entry entry = read<Entry>(parts.index, middle);
    if (entry.key == key) return inflated(parts, entry);
    if (entry.key < key)
      low = middle + 1;
    else
      high = middle;
  }
  return {};
}

}  // namespace

std::string_view usable_store() {
  static const bool wanted = env_flag("TENON_CUDA_BUILT_IN", true);
  return wanted ? built_in_store() : std::string_view();
}

Digest built_in_key(const Source& source, const std::string& arch_option) {
  Digester digester;
  digester.add(source.entry);
  digester.add(source.text);
  for (const auto& [name, text] : headers_of(source.text)) {
    digester.add(name);
    digester.add(*text);
  }
  for (const char* option : common_options()) digester.add(option);
  digester.add(arch_option);
  return digester.result();
}

std::string make_store(int toolkit, const std::vector<BuiltIn>& kernels) {
  std::vector<std::string> options;
  std::map<Digest, const BuiltIn*> by_key;
  std::map<std::string_view, std::size_t> numbers;  // of the different images
  std::vector<std::string_view> plain;
  for (const BuiltIn& kernel : kernels) {
    by_key.emplace(kernel.key, &kernel);
    if (std::find(options.begin(), options.end(), kernel.arch_option) == options.end())
      options.push_back(kernel.arch_option);
    if (numbers.emplace(kernel.image, plain.size()).second) plain.push_back(kernel.image);
  }
  std::vector<std::string> packed(plain.size());
  parallel_for(static_cast<std::int64_t>(plain.size()), [&](std::int64_t i, int) {
    packed[static_cast<std::size_t>(i)] = deflated(plain[static_cast<std::size_t>(i)]);
  });
  std::vector<std::uint32_t> offsets;
  std::string images, index;
  for (const std::string& image : packed) {
    offsets.push_back(static_cast<std::uint32_t>(images.size()));
    images += image;
  }
  for (const auto& [key, kernel] : by_key) {
    const std::size_t number = numbers.at(kernel->image);
    Entry entry;
    entry.key = key;
    entry.set = static_cast<std::uint32_t>(
        std::find(options.begin(), options.end(), kernel->arch_option) - options.begin());
    entry.offset = offsets[number];
    entry.packed = static_cast<std::uint32_t>(packed[number].size());
    entry.bytes = static_cast<std::uint32_t>(kernel->image.size());
    index += bytes_of(entry);
  }
  StoreHead head;
  head.toolkit = static_cast<std::uint32_t>(toolkit);
  head.sets = static_cast<std::uint32_t>(options.size());
  head.entries = static_cast<std::uint32_t>(by_key.size());
  std::string store(bytes_of(head));
  for (const std::string& option : options) {
    SetHead set;
    option.copy(set.option, sizeof set.option - 1);
    store += bytes_of(set);
  }
  return store + index + images;
}

std::vector<BuiltIn> read_store(std::string_view store) {
  const StoreParts parts(store);
  std::vector<BuiltIn> kernels;
  for (std::size_t k = 0; k < parts.head.entries; ++k) {
    const auto entry = read<Entry>(parts.index, k);
    if (entry.set < parts.head.sets)
      kernels.push_back({option_of(parts, entry.set), entry.key, inflated(parts, entry)});
  }
  return kernels;
}

StoreFacts store_facts(std::string_view store) {
  const StoreParts parts(store);
  StoreFacts facts;
  facts.toolkit = static_cast<int>(parts.head.toolkit);
  for (std::size_t k = 0; k < parts.head.sets; ++k) {
    facts.sets.push_back({option_of(parts, k), 0, 0});
  }
  std::map<std::uint32_t, bool> counted;  // images, by offset
  for (std::size_t k = 0; k < parts.head.entries; ++k) {
    const auto entry = read<Entry>(parts.index, k);
    if (entry.set >= facts.sets.size()) continue;
    StoreFacts::Set& set = facts.sets[entry.set];
    ++set.kernels;
    if (counted.emplace(entry.offset, true).second) set.bytes += entry.packed;
  }
  return facts;
}

std::string store_text(const StoreFacts& facts) {
  std::string text;
  for (const StoreFacts::Set& set : facts.sets) {
    const std::string name =
        set.arch_option.substr(std::min(sizeof kOption - 1, set.arch_option.size()));
    text += cat(text.empty() ? "" : ", ", set.kernels, " for ",
                name.starts_with("compute") ? "newer GPUs (PTX)" : name);
  }
  return text;
}

std::string find_built_in(std::string_view store, const Source& source, int arch,
                          int driver_version, bool also_ptx) {
  const StoreParts parts(store);
  // A driver loads cubins made by its own major version of CUDA and by older ones.
  const int toolkit = static_cast<int>(parts.head.toolkit);
  if (parts.head.entries == 0 || toolkit / 1000 > driver_version / 1000) return {};
  // Cubins for 8.0 run on all of 8.x.
  const char* option = arch == 90       ? "--gpu-architecture=sm_90a"
                       : arch / 10 == 8 ? "--gpu-architecture=sm_80"
                                        : nullptr;
  std::string image;
  if (option != nullptr) image = find(parts, built_in_key(source, option));
  // PTX must not be newer than the driver, not even by a minor version.
  if (image.empty() && also_ptx && toolkit <= driver_version)
    image = find(parts, built_in_key(source, kPtxOption));
  return image;
}

}  // namespace tenon::cuda

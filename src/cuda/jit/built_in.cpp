// Reading and writing the store.
#include "cuda/jit/built_in.h"

#include <cstring>

#include "cuda/jit/embedded.h"
#include "cuda/jit/nvrtc.h"

namespace tenon::cuda {
namespace {

struct StoreHead {
  char magic[8] = {'T', 'N', 'S', 'T', 'O', 'R', 'E', '1'};
  std::int64_t toolkit = 0;
};
struct RecordHead {
  std::uint64_t lo = 0, hi = 0, bytes = 0;
};

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string_view find(std::string_view records, const Digest& key) {
  RecordHead head;
  while (records.size() >= sizeof head) {
    std::memcpy(&head, records.data(), sizeof head);
    records.remove_prefix(sizeof head);
    if (head.bytes > records.size()) return {};
    if (head.lo == key.lo && head.hi == key.hi) return records.substr(0, head.bytes);
    records.remove_prefix(head.bytes);
  }
  return {};
}

}  // namespace

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
  StoreHead head;
  head.toolkit = toolkit;
  std::string store(bytes_of(head));
  for (const BuiltIn& kernel : kernels) {
    // Images start at multiples of 8 bytes, as ELF wants.
    const std::uint64_t padded = (kernel.image.size() + 7) / 8 * 8;
    store += bytes_of(RecordHead{kernel.key.lo, kernel.key.hi, padded});
    store += kernel.image;
    store.append(padded - kernel.image.size(), '\0');
  }
  return store;
}

std::string_view find_built_in(std::string_view store, const Source& source, int arch,
                               int driver_version, bool also_ptx) {
  StoreHead head;
  const StoreHead wanted;
  if (store.size() < sizeof head) return {};
  std::memcpy(&head, store.data(), sizeof head);
  if (std::memcmp(head.magic, wanted.magic, sizeof head.magic) != 0) return {};
  // A driver loads what its own major version of CUDA and older ones made.
  if (head.toolkit / 1000 > driver_version / 1000) return {};
  store.remove_prefix(sizeof head);
  // Cubins for 8.0 run on all of 8.x.
  const char* option = arch == 90       ? "--gpu-architecture=sm_90a"
                       : arch / 10 == 8 ? "--gpu-architecture=sm_80"
                                        : nullptr;
  std::string_view image;
  if (option != nullptr) image = find(store, built_in_key(source, option));
  if (image.empty() && also_ptx)
    image = find(store, built_in_key(source, "--gpu-architecture=compute_80"));
  return image;
}

}  // namespace tenon::cuda

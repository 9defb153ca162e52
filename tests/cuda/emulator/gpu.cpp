// Device memory is host memory: guard zone, block, guard zone.
#include "gpu.h"

#include <cstdlib>
#include <cstring>
#include <vector>

namespace tenon_emulator {
namespace {

using namespace tenon::cuda;

constexpr std::size_t zone = 4096;
constexpr int guard_byte = 0xa5, fresh_byte = 0xff;

unsigned char* bytes_at(std::uintptr_t address) {
  return reinterpret_cast<unsigned char*>(address);
}

/// First byte of a zone that was written to, or `zone`.
std::size_t written(const unsigned char* guard) {
  static const std::vector<unsigned char> untouched(zone, guard_byte);
  if (std::memcmp(guard, untouched.data(), zone) == 0) return zone;
  for (std::size_t i = 0; i < zone; ++i) {
    if (guard[i] != guard_byte) return i;
  }
  return zone;
}

std::string text(std::size_t number) { return std::to_string(number); }

std::string& failure() {
  static std::string words;
  return words;
}

}  // namespace

int setting(const char* variable, int otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : std::atoi(value);
}

CUresult injected(const char* function) {
  static std::string asked;
  static int calls = 0;
  const char* value = std::getenv("TENON_FAKE_CUDA_FAIL");
  if (value == nullptr) {
    asked.clear();
    return CUDA_SUCCESS;
  }
  if (asked != value) {
    asked = value;
    calls = 0;
  }
  const std::size_t first = asked.find(':'), second = asked.find(':', first + 1);
  if (second == std::string::npos || asked.substr(0, first) != function) return CUDA_SUCCESS;
  if (++calls != std::atoi(asked.c_str() + first + 1)) return CUDA_SUCCESS;
  return fail(static_cast<CUresult>(std::atoi(asked.c_str() + second + 1)),
              "asked for by TENON_FAKE_CUDA_FAIL");
}

CUresult fail(CUresult result, const std::string& what) {
  failure() = what;
  return result;
}

const std::string& last_failure() { return failure(); }

Memory& memory() {
  // Never destroyed: buffers in static storage are released at the end of the process.
  static Memory* const all = new Memory;
  return *all;
}

std::size_t Memory::used(int gpu) const {
  std::size_t sum = 0;
  for (const auto& [address, range] : ranges_) sum += range.gpu == gpu ? range.bytes : 0;
  return sum;
}

void* Memory::allocate(std::size_t bytes, int gpu) {
  const auto total = static_cast<std::size_t>(setting("TENON_FAKE_CUDA_MEMORY", 16384)) << 20;
  if (bytes > total || used(gpu) > total - bytes) return nullptr;
  const std::size_t padded = (bytes + zone - 1) / zone * zone;
  auto* base = static_cast<unsigned char*>(std::aligned_alloc(zone, padded + 2 * zone));
  if (base == nullptr) return nullptr;
  std::memset(base, guard_byte, zone);
  std::memset(base + zone, fresh_byte, bytes);
  std::memset(base + zone + bytes, guard_byte, zone);
  ranges_[reinterpret_cast<std::uintptr_t>(base + zone)] = {bytes, gpu, ++allocations_};
  return base + zone;
}

void* Memory::allocate_host(std::size_t bytes) {
  void* block = std::aligned_alloc(zone, (bytes + zone - 1) / zone * zone);
  if (block == nullptr) return nullptr;
  std::memset(block, fresh_byte, bytes);
  ranges_[reinterpret_cast<std::uintptr_t>(block)] = {bytes, -1, ++allocations_};
  return block;
}

CUresult Memory::release(void* block, bool host) {
  const auto found = ranges_.find(reinterpret_cast<std::uintptr_t>(block));
  if (found == ranges_.end() || (found->second.gpu < 0) != host) {
    return fail(CUDA_ERROR_INVALID_VALUE, "released memory that is not allocated");
  }
  const CUresult checked = check_guards("what ran before memory was released");
  std::free(host ? block : static_cast<unsigned char*>(block) - zone);
  ranges_.erase(found);
  return checked;
}

const Range* Memory::find(const void* block, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return nullptr;
  --next;
  return address + bytes <= next->first + next->second.bytes ? &next->second : nullptr;
}

CUresult Memory::check_guards(const std::string& culprit) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& [address, range] : ranges_) {
    if (range.gpu < 0) continue;
    unsigned char* before = bytes_at(address) - zone;
    unsigned char* behind = bytes_at(address) + range.bytes;
    const std::size_t in_front = written(before), at_end = written(behind);
    if (in_front == zone && at_end == zone) continue;
    const std::string place =
        in_front != zone ? text(zone - in_front) + " bytes before" : text(at_end) + " bytes behind";
    result =
        fail(CUDA_ERROR_ILLEGAL_ADDRESS,
             culprit + ": a write " + place + " an allocation of " + text(range.bytes) + " bytes");
    std::memset(before, guard_byte, zone);
    std::memset(behind, guard_byte, zone);
  }
  return result;
}

}  // namespace tenon_emulator

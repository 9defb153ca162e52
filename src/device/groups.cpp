// The process's groups, and the staged group for arbitrary devices: values are copied to the host,
// combined in rank order, and copied back.
#include "device/groups.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"
#include "device/backend.h"
#include "device/copy.h"

namespace tenon {
namespace {

using Bytes = std::vector<std::byte>;

// The type that sums are computed in: float32 for 16-bit floats; unsigned types for integers, so
// that overflow wraps around as on GPUs.
template <class T>
T added(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return a + b;
  }
}

template <class T>
void combine_as(std::span<const Bytes> given, std::size_t count, Combine by, Bytes& to) {
  using Wide = std::conditional_t<sizeof(T) == 2, float, T>;
  const auto element = [&](std::size_t rank, std::size_t k) {
    T value;
    std::memcpy(&value, given[rank].data() + k * sizeof(T), sizeof(T));
    return static_cast<Wide>(value);
  };
  for (std::size_t k = 0; k < count; ++k) {
    Wide total = element(0, k);
    for (std::size_t rank = 1; rank < given.size(); ++rank) {
      const Wide next = element(rank, k);
      total = by == Combine::Sum   ? added(total, next)
              : by == Combine::Max ? std::max(total, next)
                                   : std::min(total, next);
    }
    const T rounded = static_cast<T>(total);
    std::memcpy(to.data() + k * sizeof(T), &rounded, sizeof(T));
  }
}

Bytes combined(std::span<const Bytes> given, std::size_t count, DType dtype, Combine by) {
  Bytes to(count * item_size(dtype));
  switch (dtype) {
    case DType::Float64:
      combine_as<double>(given, count, by, to);
      break;
    case DType::Float32:
      combine_as<float>(given, count, by, to);
      break;
    case DType::Float16:
      combine_as<float16>(given, count, by, to);
      break;
    case DType::BFloat16:
      combine_as<bfloat16>(given, count, by, to);
      break;
    case DType::Int64:
      combine_as<std::int64_t>(given, count, by, to);
      break;
    case DType::Int32:
      combine_as<std::int32_t>(given, count, by, to);
      break;
    case DType::Int8:
      combine_as<std::int8_t>(given, count, by, to);
      break;
    case DType::UInt8:
      combine_as<std::uint8_t>(given, count, by, to);
      break;
    default:
      throw InternalError(cat("a group does not combine ", dtype));
  }
  return to;
}

class StagedCommunicator final : public Communicator {
 public:
  explicit StagedCommunicator(std::span<const Device> members)
      : members_(members.begin(), members.end()) {}
  int size() const override { return static_cast<int>(members_.size()); }

  void all_reduce(std::span<const Part> parts, std::int64_t count, DType dtype,
                  Combine by) override {
    const auto n = static_cast<std::size_t>(count);
    const Bytes whole = combined(gather(parts, n * item_size(dtype)), n, dtype, by);
    for (const Part& part : parts) give(part, whole.data(), whole.size());
  }
  void broadcast(std::span<const Part> parts, std::int64_t count, DType dtype, int root) override {
    const std::size_t bytes = static_cast<std::size_t>(count) * item_size(dtype);
    const Part& from = of_rank(parts, root);
    for (const Part& part : parts)
      if (part.rank != root)
        copy_bytes(part.to, device_of(part), from.from, device_of(from), bytes);
  }
  void all_gather(std::span<const Part> parts, std::int64_t count, DType dtype) override {
    const std::size_t bytes = static_cast<std::size_t>(count) * item_size(dtype);
    Bytes whole;
    for (const Bytes& one : gather(parts, bytes)) whole.insert(whole.end(), one.begin(), one.end());
    for (const Part& part : parts) give(part, whole.data(), whole.size());
  }
  void reduce_scatter(std::span<const Part> parts, std::int64_t count, DType dtype,
                      Combine by) override {
    const std::size_t n = static_cast<std::size_t>(count) * members_.size();
    const std::size_t bytes = static_cast<std::size_t>(count) * item_size(dtype);
    const Bytes whole = combined(gather(parts, n * item_size(dtype)), n, dtype, by);
    for (const Part& part : parts)
      give(part, whole.data() + static_cast<std::size_t>(part.rank) * bytes, bytes);
  }

 private:
  Device device_of(const Part& part) const { return members_[static_cast<std::size_t>(part.rank)]; }
  static const Part& of_rank(std::span<const Part> parts, int rank) {
    for (const Part& part : parts)
      if (part.rank == rank) return part;
    throw InternalError(cat("a group was called without its member ", rank));
  }
  std::vector<Bytes> gather(std::span<const Part> parts, std::size_t bytes) const {
    std::vector<Bytes> given;
    given.reserve(members_.size());
    for (int rank = 0; rank < size(); ++rank) {
      const Part& part = of_rank(parts, rank);
      given.emplace_back(bytes);
      copy_bytes(given.back().data(), {}, part.from, device_of(part), bytes);
    }
    return given;
  }
  void give(const Part& part, const std::byte* from, std::size_t bytes) const {
    copy_bytes(part.to, device_of(part), from, {}, bytes);
  }

  const std::vector<Device> members_;
};

std::unique_ptr<Communicator> make_group(std::span<const Device> members) {
  std::vector<int> indices;
  indices.reserve(members.size());
  for (const Device member : members) {
    if (member.kind != members[0].kind) return make_staged_communicator(members);
    indices.push_back(member.index);
  }
  std::unique_ptr<Communicator> own = backend_of(members[0]).make_communicator(indices);
  return own != nullptr ? std::move(own) : make_staged_communicator(members);
}

}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(std::span<const Device> members) {
  return std::make_unique<StagedCommunicator>(members);
}

Communicator& communicator_of(std::span<const Device> members) {
  struct Groups {
    std::mutex mutex;
    std::map<std::vector<std::pair<Device::Kind, int>>, std::unique_ptr<Communicator>> known;
  };
  static Groups* const groups = new Groups;
  std::vector<std::pair<Device::Kind, int>> key;
  key.reserve(members.size());
  for (const Device member : members) key.emplace_back(member.kind, member.index);
  const std::lock_guard lock(groups->mutex);
  std::unique_ptr<Communicator>& group = groups->known[key];
  if (group == nullptr) group = make_group(members);
  return *group;
}

}  // namespace tenon

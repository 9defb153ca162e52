// Collectives: one node for each group, with one result for each member, on the member's device.
//
// If all members share one device, nothing is exchanged: the same values are computed with other
// ops. A mean is a sum that each member divides.
#include "ops/collective.h"

#include <algorithm>
#include <bit>

#include <tenon/error.h>

#include "base/str.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr int kMaskBits = 64;

const CollectiveAttrs& attrs_of(const Node& node) { return node.attrs.as<CollectiveAttrs>(); }

bool sums(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
}

// Whether every member has a device of its own; if not, all must share one.
bool on_separate_devices(const char* name, std::span<const Device> devices) {
  std::size_t equal = 0;
  for (std::size_t k = 0; k < devices.size(); ++k)
    equal += std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(k),
                       devices[k]) != devices.begin() + static_cast<std::ptrdiff_t>(k)
                 ? 1
                 : 0;
  if (equal != 0 && equal + 1 != devices.size())
    throw DeviceError(cat(where(name), ": ", devices.size(), " members on ", devices.size() - equal,
                          " devices: give each a device of its own, or all the same"));
  return equal == 0;
}

std::vector<Device> devices_of_parts(const char* name, std::span<const Tensor> parts) {
  if (parts.empty())
    throw ValueError(cat(where(name), ": there are no parts; a group needs at least one member"));
  std::vector<Device> devices;
  devices.reserve(parts.size());
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (!parts[k].defined())
      throw ValueError(cat(where(name), ": part ", k, " is an undefined tensor"));
    devices.push_back(parts[k].device());
  }
  return devices;
}

// The sum in rank order; 16-bit floats are rounded once.
Tensor sum_here(std::span<const Tensor> parts) {
  const DType dtype = parts[0].dtype();
  const bool upcast = dtype == DType::Float16 || dtype == DType::BFloat16;
  const auto term = [&](const Tensor& x) { return upcast ? cast(x, DType::Float32) : x; };
  Tensor total = term(parts[0]);
  for (const Tensor& part : parts.subspan(1)) total = total + term(part);
  return cast(total, dtype);
}

std::vector<Tensor> here(const Node& checked, std::span<const Tensor> parts) {
  const CollectiveKind kind = attrs_of(checked).kind;
  const Tensor whole = sums(kind) ? sum_here(parts) : concat({parts.begin(), parts.end()}, 0);
  if (kind != CollectiveKind::ReduceScatter) return std::vector<Tensor>(parts.size(), whole);
  const auto count = static_cast<std::int64_t>(parts.size());
  const std::int64_t rows = whole.size(0) / count;
  std::vector<Tensor> results;
  for (std::int64_t k = 0; k < count; ++k)
    results.push_back(slice(whole, 0, k * rows, (k + 1) * rows));
  return results;
}

std::vector<Tensor> exchange(const char* name, CollectiveKind kind, std::span<const Tensor> parts,
                             Reduction reduction = Reduction::Sum) {
  const Called called(name);
  const std::vector<Device> devices = devices_of_parts(name, parts);
  if (reduction == Reduction::None)
    throw ValueError(cat(where(name), ": Reduction::None combines nothing: use Sum or Mean"));
  if (reduction == Reduction::Mean && !is_floating(parts[0].dtype()))
    throw DTypeError(cat(where(name), ": a mean of ", parts[0].dtype(), ": cast it to floating"));
  const bool apart = on_separate_devices(name, devices);
  std::vector<Tensor> given;
  for (std::size_t k = 0; k < parts.size(); ++k) given.push_back(placed_on(parts[k], devices[k]));
  const Tensor node = build(Op::Collective, given, CollectiveAttrs{kind});
  std::vector<Tensor> results =
      apart && parts.size() > 1 ? results_of(node) : here(*node.node(), parts);
  if (reduction == Reduction::Mean)
    for (Tensor& result : results) result = result / static_cast<double>(parts.size());
  return results;
}

}  // namespace

std::vector<Tensor> all_reduce(std::span<const Tensor> parts, Reduction reduction) {
  return exchange("all_reduce", CollectiveKind::AllReduce, parts, reduction);
}
std::vector<Tensor> all_gather(std::span<const Tensor> parts) {
  return exchange("all_gather", CollectiveKind::AllGather, parts);
}
std::vector<Tensor> reduce_scatter(std::span<const Tensor> parts, Reduction reduction) {
  return exchange("reduce_scatter", CollectiveKind::ReduceScatter, parts, reduction);
}

std::vector<Tensor> broadcast(const Tensor& x, std::span<const Device> members) {
  const Called called("broadcast");
  const Device home = devices_of_parts("broadcast", {&x, 1})[0];
  const Tensor given = placed_on(x, home);
  if (std::find(members.begin(), members.end(), home) == members.end())
    throw DeviceError(cat(where("broadcast"), ": the tensor is on ", home.str(),
                          ", which is not a member of the group"));
  const bool apart = on_separate_devices("broadcast", members);
  const bool one_backend = std::all_of(members.begin(), members.end(), [&](Device device) {
    return device.kind == home.kind && device.index < kMaskBits;
  });
  std::vector<Tensor> results;
  if (!apart || !one_backend || members.size() == 1) {
    for (const Device device : members) results.push_back(to(given, device));
    return results;
  }
  CollectiveAttrs attrs{CollectiveKind::Broadcast, static_cast<std::int32_t>(home.kind), 0};
  for (const Device device : members) attrs.members |= std::uint64_t{1} << device.index;
  const Tensor node = build(Op::Collective, {given}, attrs);
  const std::vector<Device> ranked = members_of(*node.node());
  for (const Device device : members) {
    const auto rank = std::find(ranked.begin(), ranked.end(), device) - ranked.begin();
    results.push_back(device == home ? given : result_of(node, rank));
  }
  return results;
}

// ---- Members ----------------------------------------------------------------------------------

std::vector<Device> members_of(const Node& collective) {
  const CollectiveAttrs& attrs = attrs_of(collective);
  std::vector<Device> members;
  if (attrs.kind != CollectiveKind::Broadcast) {
    for (const Node* in : collective.in()) members.push_back(in->device);
    return members;
  }
  for (int index = 0; index < kMaskBits; ++index)
    if ((attrs.members >> index & 1u) != 0)
      members.push_back(
          {static_cast<Device::Kind>(attrs.device), static_cast<std::int16_t>(index)});
  return members;
}

Device member_of(const Node& collective, std::int64_t k) {
  return members_of(collective)[static_cast<std::size_t>(k)];
}

// ---- Inference --------------------------------------------------------------------------------

Inferred infer_collective_result(const Node& node, std::int64_t) {
  require_same_shape(node);
  require_same_dtype(node);
  const Node& part = *node.input(0);
  const CollectiveKind kind = attrs_of(node).kind;
  if (sums(kind) && is_bool(part.dtype))
    throw DTypeError(cat(where(node), ": does not take bool: cast to a number"));
  Shape shape = part.shape;
  if (kind == CollectiveKind::AllReduce || kind == CollectiveKind::Broadcast)
    return {part.dtype, shape};
  if (shape.rank() == 0)
    throw ShapeError(cat(where(node), ": the parts are scalars, which have no first axis"));
  const std::int64_t count = node.input_count;
  if (kind == CollectiveKind::ReduceScatter && shape[0] % count != 0)
    throw ShapeError(cat(where(node), ": ", count, " members cannot share the first axis of ",
                         shape, " evenly"));
  shape[0] = kind == CollectiveKind::AllGather ? shape[0] * count : shape[0] / count;
  return {part.dtype, shape};
}

Inferred infer_collective(const Node& node) { return infer_collective_result(node, 0); }

std::int64_t count_collective_results(const Node& node) {
  const CollectiveAttrs& attrs = attrs_of(node);
  return attrs.kind == CollectiveKind::Broadcast ? std::popcount(attrs.members)
                                                 : std::int64_t{node.input_count};
}

// ---- Gradients --------------------------------------------------------------------------------

// The contribution of one member reaches the results of all members.
Gradients vjp_collective(const Tensor& out, std::span<const Tensor> cotangents) {
  const Node& node = *out.node();
  const std::vector<Device> members = members_of(node);
  const Inferred type = infer_collective_result(node, 0);
  std::vector<Tensor> parts;
  for (std::size_t k = 0; k < members.size(); ++k) {
    const Tensor& given = cotangents[k];
    parts.push_back(placed_on(given.defined() ? given : zeros(type.shape, type.dtype), members[k]));
  }
  switch (attrs_of(node).kind) {
    case CollectiveKind::AllReduce:
      return all_reduce(parts);
    case CollectiveKind::AllGather:
      return reduce_scatter(parts);
    case CollectiveKind::ReduceScatter:
      return all_gather(parts);
    case CollectiveKind::Broadcast:
      break;
  }
  const auto root = std::find(members.begin(), members.end(), node.input(0)->device);
  return {all_reduce(parts)[static_cast<std::size_t>(root - members.begin())]};
}

}  // namespace tenon

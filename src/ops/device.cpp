// Moving tensors between devices. The transfer itself happens in src/run.
#include <tenon/shapes_only.h>
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {

Tensor to(const Tensor& x, Device device) {
  require_defined("to", x);
  if (!x.node()->placed) {
    // Allocating zero bytes refuses missing devices with the same error as other allocations.
    if (device.kind != Device::Kind::Cpu && !ShapesOnly::is_on()) Buffer::allocate(0, device);
    return placed_on(x, device);
  }
  if (x.node()->device == device) return x;
  Tensor out =
      build(Op::ToDevice, {x}, DeviceAttrs{static_cast<std::int32_t>(device.kind), device.index});
  out.node()->device = device;
  return out;
}

Tensor placed_on(const Tensor& x, Device device) {
  if (x.node()->placed) return x;
  Tensor out = build_as(Op::Cast, x.dtype(), x.shape(), {x});
  out.node()->placed = true;
  out.node()->device = device;
  return out;
}

Gradients vjp_to(const Tensor& out, const Tensor& g) { return {to(g, input_of(out, 0).device())}; }

}  // namespace tenon

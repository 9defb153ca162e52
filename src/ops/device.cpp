// Moving tensors between devices. The transfer itself is the runner's work.
#include <tenon/shapes_only.h>
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {

Tensor to(const Tensor& x, Device device) {
  require_defined("to", x);
  if (x.defined() && x.node()->placed && x.node()->device == device) return x;
  // Numbers and ramps belong to every device that is there; allocating refuses others, as it does
  // for data.
  if (x.defined() && !x.node()->placed) {
    if (device.kind != Device::Kind::Cpu && !ShapesOnly::is_on()) Buffer::allocate(0, device);
    return x;
  }
  Tensor out =
      build(Op::ToDevice, {x}, DeviceAttrs{static_cast<std::int32_t>(device.kind), device.index});
  out.node()->device = device;
  return out;
}

Gradients vjp_to(const Tensor& out, const Tensor& g) { return {to(g, input_of(out, 0).device())}; }

}  // namespace tenon

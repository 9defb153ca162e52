// Response normalisation across channels: the window becomes source, sizes and factors become
// arguments.
#include "base/index.h"
#include "cuda/engines/opaque/opaque_kernels.h"
#include "cuda/kernels/opaque/response_args.cuh"

namespace tenon::cuda {

std::unique_ptr<Kernel> prepare_response(const OpaqueCall& call) {
  const auto& v = call.op.attrs.as<ResponseAttrs>();
  const Shape& s = call.op.shapes[0];
  const bool last = call.op.channels_last;
  const bool gradient = call.op.inputs.size() == 2;
  // A gradient reads only the thread's channels and their direct neighbours.
  const bool by_runs = gradient && !last && v.size <= kResponseLanes + 1;
  ResponseArgs args;
  args.mean = v.alpha / static_cast<double>(v.size);
  args.beta = v.beta;
  args.k = v.k;
  args.count = s.numel();
  if (last) {
    const std::int64_t words = s[3] / kResponseLanes;
    args.count /= kResponseLanes;
    args.channels = make_divisor(words);
  } else if (args.count > 0) {
    args.channels = make_divisor(s[1]);
    const std::int64_t places = args.count / (s[0] * s[1]), runs = divide_up(s[1], kResponseLanes);
    args.places = make_divisor(places);
    args.runs = make_divisor(runs);
    if (by_runs) args.count = s[0] * runs * places;
  }
  auto kernel = std::make_unique<OpaqueKernel<ResponseArgs>>(call, args, grid_over(args.count));
  if (args.count == 0) return kernel;
  const std::string function = cat("response_norm", gradient ? "_grad" : "",
                                   by_runs ? "_runs"
                                   : last  ? "_last"
                                           : "");
  kernel->compile_body(call.target, cat("tenon_", function), "opaque/response.cuh", "ResponseArgs",
                       cat(function, "<", element_name(call.out().dtype), ", ", v.before(), ", ",
                           v.after(), ", ", truth(needs_wide(args.count)), ">(a)"));
  return kernel;
}

}  // namespace tenon::cuda

#include "cuda/kernels/conv/conv_gradient.cuh"

using namespace tenon::cuda;

struct Config {
  static constexpr Math kMath = Math::Bf16;
  static constexpr Kind kImage = Kind::Float32;
  static constexpr bool kShifts = false, kWhole = true;
  static constexpr int kM = 32;
  static constexpr int kN = 144;
  static constexpr int kThreads = 384;
  static constexpr int kThreadM = 32;
  static constexpr int kThreadN = 48;
  static constexpr Kind kGradient = Kind::Float32;
  static constexpr int kAligned = 1, kPixels = 0;
};

extern "C" __global__ void __launch_bounds__(384, 1)
conv_gradient(const ConvGradient p) {
  TENON_DYNAMIC_SHARED(shared);
  ConvGradientBlock<Config>(p, shared).await_and_run();
}

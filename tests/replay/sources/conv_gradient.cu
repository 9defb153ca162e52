#include "cuda/kernels/conv_gradient.cuh"

using namespace tenon::cuda;

struct Config {
  static constexpr Math kMath = Math::Bf16;
  static constexpr Kind kPicture = Kind::Float32;
  static constexpr bool kShifts = false, kWhole = false;
  static constexpr int kM = 16;
  static constexpr int kN = 224;
  static constexpr int kThreads = 256;
  static constexpr int kThreadM = 16;
  static constexpr int kThreadN = 112;
  static constexpr Kind kGradient = Kind::Float32;
  static constexpr int kAligned = 2;
};

extern "C" __global__ void __launch_bounds__(256, 2)
conv_gradient(const ConvGradient p) {
  TENON_DYNAMIC_SHARED(shared);
  ConvGradientBlock<Config>(p, shared).await_and_run();
}

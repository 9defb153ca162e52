// The intrinsics and the emulated GPU, on which all other files of tests/cuda rely. A kernel must
// give the results of plain loops, and the emulator must find the errors that it promises to find.
// Everything except the latter runs on a real GPU too.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "raw_gpu.h"

namespace {

using raw::Array;
using raw::Gpu;

std::vector<float> random_floats(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(engine()) * 0x1p-31f - 1.0f;
  return values;
}

const char* const vector_add = R"(
struct Sizes { const float* a; long long n; };
extern "C" __global__ void __launch_bounds__(256)
add(const __grid_constant__ Sizes sizes, const float* __restrict__ b, float* y, float scale) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < sizes.n) y[i] = fmaf(sizes.a[i], scale, b[i]);
})";

struct Sizes {
  std::uint64_t a;
  long long n;
};

TEST_CASE("a kernel takes structs, pointers and numbers") {
  Gpu* gpu = raw::gpu();
  if (gpu == nullptr) return;
  const std::vector<float> a = random_floats(1000, 1), b = random_floats(1000, 2);
  Array<float> da(a), db(b), dy(std::vector<float>(1000, NAN));
  Sizes sizes{da.address(), 999};
  float scale = 3;
  auto* add = gpu->compile(vector_add, "add");
  gpu->check(gpu->launch(add, {4}, {256}, {&sizes, &db.address(), &dy.address(), &scale}));
  const std::vector<float> y = dy.get();
  for (std::size_t i = 0; i < 999; ++i) CHECK(y[i] == std::fma(a[i], 3.0f, b[i]));
  CHECK(std::isnan(y[999]));
}

const char* const block_sum = R"(
#include "cuda/kernels/intrinsics.cuh"
using namespace tenon::cuda;
template <class T> __device__ T warp_sum(T x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x += shuffle_xor(x, lanes);
  return x;
}
extern "C" __global__ void sum(const float* x, double* y, int n) {
  __shared__ alignas(16) double parts[32];
  TENON_DYNAMIC_SHARED(memory);
  double* lasts = reinterpret_cast<double*>(memory);
  double mine = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) mine += x[blockIdx.x * n + i];
  mine = warp_sum(mine);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x < 32) {
    const double all = warp_sum(threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0);
    if (threadIdx.x == 0) lasts[0] = all;
  }
  __syncthreads();
  if (threadIdx.x == 7) y[blockIdx.x] = lasts[0];
}
)";

TEST_CASE("a block reduces through shuffles and shared memory") {
  Gpu* gpu = raw::gpu();
  if (gpu == nullptr) return;
  auto* sum = gpu->compile(block_sum, "sum");
  int n = 777;
  const std::vector<float> x = random_floats(3 * 777, 3);
  Array<float> dx(x);
  for (unsigned threads : {64u, 256u, 1024u}) {
    Array<double> dy(std::vector<double>(3, NAN));
    gpu->check(gpu->launch(sum, {3}, {threads}, {&dx.address(), &dy.address(), &n}, 8));
    const std::vector<double> y = dy.get();
    for (std::size_t row = 0; row < 3; ++row) {
      const double want = std::accumulate(x.begin() + static_cast<long>(row) * n,
                                          x.begin() + static_cast<long>(row + 1) * n, 0.0);
      CHECK(y[row] == doctest::Approx(want).epsilon(1e-10));
    }
  }
}

// One warp, one tile, through asynchronous copies and ldmatrix for the 16-bit types.
const char* const products = R"(
#include "cuda/kernels/intrinsics.cuh"
using namespace tenon::cuda;
extern "C" __global__ void product16(const unsigned short* a, const unsigned short* b, float* c,
                                     int half) {
  __shared__ __align__(16) unsigned short left[16 * 16], right[16 * 8];
  const int lane = threadIdx.x;
  copy_async_16(left + 8 * lane, a + 8 * lane, true);
  copy_async_commit();
  if (lane < 16) copy_async_16(right + 8 * lane, b + 8 * lane, true);
  copy_async_commit();
  copy_async_wait<0>();
  __syncwarp();
  unsigned fa[4], fb[2];
  float d[4] = {0, 0, 0, 0};
  ldmatrix_x4(fa, left + (lane % 16) * 16 + lane / 16 * 8);
  ldmatrix_x2_trans(fb, right + (lane % 16) * 8);
  if (half) mma_f16_m16n8k16(d, fa, fb); else mma_bf16_m16n8k16(d, fa, fb);
  for (int i = 0; i < 4; ++i) c[(lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2] = d[i];
}
extern "C" __global__ void product32(const float* a, const float* b, float* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  const unsigned fa[4] = {to_tf32(a[g * 8 + t]), to_tf32(a[(g + 8) * 8 + t]),
                          to_tf32(a[g * 8 + t + 4]), to_tf32(a[(g + 8) * 8 + t + 4])};
  const unsigned fb[2] = {to_tf32(b[t * 8 + g]), to_tf32(b[(t + 4) * 8 + g])};
  float d[4] = {1, 1, 1, 1};
  mma_tf32_m16n8k8(d, fa, fb);
  for (int i = 0; i < 4; ++i) c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = d[i];
}
extern "C" __global__ void narrow(const float* x, unsigned short* bf16, unsigned short* f16,
                                  float* from_bf16, float* from_f16, unsigned* pairs, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  bf16[i] = float_to_bf16(x[i]);
  f16[i] = float_to_f16(x[i]);
  from_bf16[i] = bf16_to_float(bf16[i]);
  from_f16[i] = f16_to_float(f16[i]);
  pairs[2 * i] = pack_bf16(x[i], 1.0f);
  pairs[2 * i + 1] = pack_f16(x[i], 1.0f);
}
)";

std::uint16_t bf16_bits(int x) {
  const auto value = static_cast<float>(x);
  return static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, value) >> 16);
}

std::uint16_t f16_bits(int x) {
  if (x == 0) return 0;
  const int exponent = std::ilogb(x);
  const auto fraction = static_cast<int>((std::abs(x) / std::ldexp(1.0, exponent) - 1) * 1024);
  return static_cast<std::uint16_t>((x < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | fraction);
}

void check_product(const std::vector<int>& a, const std::vector<int>& b,
                   const std::vector<float>& c, int depth, float start) {
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      int want = 0;
      for (int k = 0; k < depth; ++k) {
        want += a[static_cast<std::size_t>(row * depth + k)] *
                b[static_cast<std::size_t>(k * 8 + column)];
      }
      CHECK(c[static_cast<std::size_t>(row * 8 + column)] == static_cast<float>(want) + start);
    }
  }
}

TEST_CASE("tensor-core products agree with plain loops") {
  Gpu* gpu = raw::gpu();
  if (gpu == nullptr) return;
  std::mt19937 engine(5);
  std::vector<int> a(256), b(128);
  for (int& x : a) x = static_cast<int>(engine() % 9) - 4;
  for (int& x : b) x = static_cast<int>(engine() % 9) - 4;
  auto* product16 = gpu->compile(products, "product16");
  auto* product32 = gpu->compile(products, "product32");
  for (int half : {0, 1}) {
    std::vector<std::uint16_t> bits_a, bits_b;
    for (int x : a) bits_a.push_back(half != 0 ? f16_bits(x) : bf16_bits(x));
    for (int x : b) bits_b.push_back(half != 0 ? f16_bits(x) : bf16_bits(x));
    Array<std::uint16_t> da(bits_a), db(bits_b);
    Array<float> dc(std::vector<float>(128, NAN));
    gpu->check(
        gpu->launch(product16, {1}, {32}, {&da.address(), &db.address(), &dc.address(), &half}));
    check_product(a, b, dc.get(), 16, 0);
  }
  Array<float> da(std::vector<float>(a.begin(), a.begin() + 128));
  Array<float> db(std::vector<float>(b.begin(), b.begin() + 64));
  Array<float> dc(std::vector<float>(128, NAN));
  gpu->check(gpu->launch(product32, {1}, {32}, {&da.address(), &db.address(), &dc.address()}));
  check_product(a, b, dc.get(), 8, 1);
}

TEST_CASE("conversions round to nearest even and keep infinities and NaN") {
  Gpu* gpu = raw::gpu();
  if (gpu == nullptr) return;
  const std::vector<float> x = {0.0f,     -0.0f,  1.0f,       1.00390625f, 1.01171875f, 65504.0f,
                                65520.0f, 1e30f,  -INFINITY,  NAN,         5.96e-8f,    2.0e-8f,
                                6.1e-5f,  1e-40f, 3.3895e38f, -1.5f,       0.1f,        2049.0f};
  const std::vector<std::uint16_t> f16 = {0,      0x8000, 0x3c00, 0x3c04, 0x3c0c, 0x7bff,
                                          0x7c00, 0x7c00, 0xfc00, 0x7fff, 1,      0,
                                          0x03ff, 0,      0x7c00, 0xbe00, 0x2e66, 0x6800};
  const std::vector<std::uint16_t> bf16 = {0,      0x8000, 0x3f80, 0x3f80, 0x3f82, 0x4780,
                                           0x4780, 0x714a, 0xff80, 0x7fff, 0x3380, 0x32ac,
                                           0x3880, 1,      0x7f7f, 0xbfc0, 0x3dcd, 0x4500};
  int n = static_cast<int>(x.size());
  Array<float> dx(x), from_bf16(x), from_f16(x);
  Array<std::uint16_t> dbf16(bf16), df16(f16);
  Array<std::uint32_t> pairs(std::vector<std::uint32_t>(2 * x.size()));
  auto* half = gpu->compile(products, "narrow");
  gpu->check(gpu->launch(half, {1}, {32},
                         {&dx.address(), &dbf16.address(), &df16.address(), &from_bf16.address(),
                          &from_f16.address(), &pairs.address(), &n}));
  const auto bf16_got = dbf16.get(), f16_got = df16.get();
  const auto pairs_got = pairs.get();
  const auto wide = from_f16.get();
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    CHECK((pairs_got[2 * i] >> 16) == 0x3f80);
    CHECK((pairs_got[2 * i + 1] >> 16) == 0x3c00);
    if (std::isnan(x[i])) {
      CHECK((bf16_got[i] & 0x7fff) > 0x7f80);
      CHECK((f16_got[i] & 0x7fff) > 0x7c00);
      continue;
    }
    CHECK(bf16_got[i] == bf16[i]);
    CHECK(f16_got[i] == f16[i]);
    CHECK((pairs_got[2 * i] & 0xffff) == bf16[i]);
    CHECK((pairs_got[2 * i + 1] & 0xffff) == f16[i]);
    if (f16[i] == 0x3c04) CHECK(wide[i] == 1.00390625f);
  }
}

TEST_CASE("a captured graph runs again, and its copies can be changed") {
  Gpu* gpu = raw::gpu();
  if (gpu == nullptr) return;
  auto* add = gpu->compile(vector_add, "add");
  Array<float> a({1, 2, 3}), b({10, 20, 30}), other({5, 5, 5}), y({0, 0, 0});
  Sizes sizes{a.address(), 3};
  float scale = 1;
  raw::CUgraph graph = nullptr;
  raw::CUgraphExec executable = nullptr;
  raw::CUgraphNode node = nullptr;
  gpu->check(gpu->call.cuGraphCreate(&graph, 0));
  raw::CUDA_MEMCPY3D copy;
  copy.srcDevice = other.address();
  copy.dstDevice = b.address();
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = b.bytes();
  copy.srcHeight = copy.dstHeight = 1;
  gpu->check(gpu->call.cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, gpu->context));
  gpu->check(gpu->call.cuStreamBeginCaptureToGraph(gpu->stream, graph, &node, nullptr, 1,
                                                   raw::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  gpu->check(gpu->launch(add, {1}, {32}, {&sizes, &b.address(), &y.address(), &scale}));
  scale = 100;  // was copied
  gpu->check(gpu->call.cuStreamEndCapture(gpu->stream, &graph));
  CHECK(y.get() == std::vector<float>{0, 0, 0});
  std::size_t count = 0;
  gpu->check(gpu->call.cuGraphGetNodes(graph, nullptr, &count));
  CHECK(count == 2);
  gpu->check(gpu->call.cuGraphInstantiateWithFlags(&executable, graph, 0));
  gpu->check(gpu->call.cuGraphLaunch(executable, gpu->stream));
  CHECK(y.get() == std::vector<float>{6, 7, 8});
  copy.srcDevice = a.address();
  gpu->check(gpu->call.cuGraphExecMemcpyNodeSetParams(executable, node, &copy, gpu->context));
  a.set({2, 4, 6});
  gpu->check(gpu->call.cuGraphLaunch(executable, gpu->stream));
  CHECK(y.get() == std::vector<float>{4, 8, 12});
  gpu->check(gpu->call.cuGraphExecDestroy(executable));
  gpu->check(gpu->call.cuGraphDestroy(graph));
}

/// Names of the functions that a header defines: words before "(" behind TENON_DEVICE.
std::set<std::string> device_functions(const std::string& path) {
  std::ifstream in(path);
  REQUIRE(in.good());
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::string qualifier = "\nTENON_DEVICE ";
  std::set<std::string> names;
  for (std::size_t at = text.find(qualifier); at != std::string::npos;
       at = text.find(qualifier, at + 1)) {
    const std::size_t end = text.find('(', at), start = text.rfind(' ', end) + 1;
    names.insert(text.substr(start, end - start));
  }
  return names;
}

TEST_CASE("the emulator has every intrinsic, and no other") {
  std::set<std::string> theirs = device_functions("src/cuda/kernels/intrinsics.cuh");
  theirs.erase("shared_address");  // serves the other functions
  CHECK(device_functions("tests/cuda/emulator/include/cuda/kernels/intrinsics.cuh") == theirs);
}

TEST_CASE("the error of a source that does not compile names the line") {
  Gpu* gpu = raw::gpu();
  if (gpu == nullptr) return;
  std::string words;
  try {
    gpu->compile("\n\nextern \"C\" __global__ void k() { undefined_thing(); }", "k");
  } catch (const std::exception& error) {
    words = error.what();
  }
  CHECK(words.find("undefined_thing") != std::string::npos);
  CHECK(words.find('3') != std::string::npos);
}

/// The error of a wrong kernel. A real GPU cannot continue after most of them.
std::string failure_of(const std::string& body, unsigned threads) {
  Gpu* gpu = raw::gpu();
  auto* kernel = gpu->compile(
      "#include \"cuda/kernels/intrinsics.cuh\"\nusing namespace "
      "tenon::cuda;\nextern \"C\" __global__ void wrong(float* y) {" +
          body + "}",
      "wrong");
  Array<float> y(std::vector<float>(64, 0));
  const auto result = gpu->launch(kernel, {1}, {threads}, {&y.address()});
  return result == raw::CUDA_SUCCESS ? "" : gpu->words(result);
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the emulator finds what is wrong with a kernel") {
  if (raw::gpu() == nullptr || !raw::gpu()->emulated) return;
  CHECK(failure_of("y[threadIdx.x] = shuffle_xor(1.0f, 1);", 48).empty());
  CHECK(contains(failure_of("y[64 + threadIdx.x] = 1;", 2), "behind an allocation"));
  CHECK(contains(failure_of("y[-1] = 1;", 1), "before an allocation"));
  CHECK(contains(failure_of("*(float*)16 = 1;", 1), "not there"));
  CHECK(
      contains(failure_of("if (threadIdx.x < 40) __syncthreads();", 64), "wait at __syncthreads"));
  CHECK(
      contains(failure_of("if (threadIdx.x != 3) y[0] = shuffle_xor(1.0f, 1);", 32), "a shuffle"));
  CHECK(contains(failure_of("if (threadIdx.x & 1) __syncwarp(); else y[0] = shuffle(1.0f, 1);", 32),
                 "other lanes"));
  CHECK(contains(failure_of("TENON_DYNAMIC_SHARED(s); s[3] = 1;", 1), "dynamic shared"));
  CHECK(
      contains(failure_of("__shared__ __align__(16) float s[8]; copy_async_16(s + 1, y, true);", 1),
               "aligned"));
  // Read before the wait: still the initial content of shared memory.
  CHECK(failure_of("__shared__ __align__(16) float s[4]; copy_async_16(s, y, true);"
                   "copy_async_commit(); if (s[0] == s[0]) __trap();",
                   1)
            .empty());
  CHECK(contains(failure_of("y[0] = 1; }\nextern \"C\" __global__ void __launch_bounds__(32) "
                            "other() {",
                            2000),
                 "a block of 2000"));
}

TEST_CASE("the emulator refuses host memory and work that a capture forbids") {
  Gpu* gpu = raw::gpu();
  if (gpu == nullptr || !gpu->emulated) return;
  float here[4] = {1, 2, 3, 4};
  Array<float> there({0, 0, 0, 0});
  auto address = reinterpret_cast<std::uintptr_t>(here);
  CHECK(gpu->call.cuMemcpyDtoDAsync(there.address(), address, 16, gpu->stream) !=
        raw::CUDA_SUCCESS);
  CHECK(gpu->call.cuMemcpyHtoDAsync(there.address(), here, 32, gpu->stream) != raw::CUDA_SUCCESS);
  raw::CUgraph graph = nullptr;
  gpu->check(gpu->call.cuStreamBeginCapture(gpu->stream, raw::CU_STREAM_CAPTURE_MODE_GLOBAL));
  raw::CUdeviceptr fresh = 0;
  CHECK(gpu->call.cuMemAlloc(&fresh, 16) == raw::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(gpu->call.cuStreamEndCapture(gpu->stream, &graph) ==
        raw::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

}  // namespace

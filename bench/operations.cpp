// Times single CPU operations: calls, and calls with a gradient.
//
//   ./dev build all
//   build/bin/bench_operations [threads [cpu]]      cpu: counts time of the processor, not of the
//   wall
//
// A server for bench/operations.py, which runs PyTorch in turn with it. Without input it lists its
// rows: name, then "train" if the row has a gradient. A line `NAME<tab>call|train<tab>SECONDS`
// times the row for that long, and prints the number of calls, and their minimum and median in
// microseconds.
#include <tenon/creation.h>
#include <tenon/elementwise.h>
#include <tenon/fft.h>
#include <tenon/functional.h>
#include <tenon/joining.h>
#include <tenon/linalg.h>
#include <tenon/losses.h>
#include <tenon/pooling.h>
#include <tenon/rearrange.h>
#include <tenon/resampling.h>
#include <tenon/scattering.h>
#include <tenon/special.h>
#include <tenon/statistics.h>
#include <tenon/tenon.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace tenon;
using Tensors = std::vector<Tensor>;

namespace {

struct Row {
  const char* name;
  Tensors (*inputs)();
  Tensor (*body)(const Tensors& in);
  int trained = 0;     // so many of the first inputs have a gradient
  bool reads = false;  // values are read at the call, so that it cannot be compiled
};

#define INPUTS(...) [] { return Tensors{__VA_ARGS__}; }
#define BODY(...) [](const Tensors& in) -> Tensor { return __VA_ARGS__; }

Tensor table() { return randn({1000, 1000}); }
Tensor near_one() { return 1.0 + 0.01 * randn({1000, 1000}); }
Tensor line() { return randn({1000000}); }
Tensor positive() { return 0.5 + 3.0 * rand({1000, 1000}); }
Tensor unit() { return 0.05 + 0.9 * rand({1000, 1000}); }
Tensor wide(const Shape& shape) { return cast(randn(shape), DType::Float64); }
Tensor places() { return randint(0, 1000, {1000, 1000}); }
Tensor some() { return randint(0, 1000, {500}); }
Tensor matrices() { return randn({64, 32, 32}) + 8.0 * eye(32); }
Tensor definite() {
  const Tensor x = randn({64, 32, 32});
  return matmul(x, transpose(x)) + eye(32);
}
Tensor images() { return randn({8, 16, 64, 64}); }

const Row kRearranging[] = {
    {"gather axis 1 [1000,1000]", INPUTS(table(), places()), BODY(gather(in[0], 1, in[1])), 1},
    {"gather axis 0 [1000,1000]", INPUTS(table(), places()), BODY(gather(in[0], 0, in[1]))},
    {"index_select columns [1000,500]", INPUTS(table(), some()),
     BODY(index_select(in[0], 1, in[1])), 1},
    {"index_select rows [500,1000]", INPUTS(table(), some()), BODY(index_select(in[0], 0, in[1]))},
    {"scatter_add axis 1 [1000,1000]", INPUTS(table(), places()),
     BODY(scatter_add(in[0], 1, in[1], in[0]))},
    {"scatter_add axis 0 [1000,1000]", INPUTS(table(), places()),
     BODY(scatter_add(in[0], 0, in[1], in[0]))},
    {"scatter axis 1 [1000,1000]", INPUTS(table(), places()),
     BODY(scatter(in[0], 1, in[1], in[0]))},
    {"scatter_reduce amax [1000,1000]", INPUTS(table(), table(), places()),
     BODY(scatter_reduce(in[0], 1, in[2], in[1], ScatterReduction::Amax)), 2},
    {"scatter_reduce amin axis 0 [1000,1000]", INPUTS(table(), table(), places()),
     BODY(scatter_reduce(in[0], 0, in[2], in[1], ScatterReduction::Amin))},
    {"scatter_reduce prod [1000,1000]", INPUTS(near_one(), near_one(), places()),
     BODY(scatter_reduce(in[0], 1, in[2], in[1], ScatterReduction::Prod))},
    {"scatter_reduce mean [1000,1000]", INPUTS(table(), table(), places()),
     BODY(scatter_reduce(in[0], 1, in[2], in[1], ScatterReduction::Mean)), 2},
    {"index_add rows [1000,1000] of 500", INPUTS(table(), some()),
     BODY(index_add(in[0], 0, in[1], slice(in[0], 0, 0, 500)))},
    {"index_put of 1,000,000 places", INPUTS(line(), randint(0, 1000000, {1000000}), line()),
     BODY(in[0].index_put({in[1]}, in[2]))},
    {"index_put columns [1000,500]", INPUTS(table(), some(), randn({1000, 500})),
     BODY(in[0].index_put({Slice(), in[1]}, in[2]))},
    {"embedding [100000,256] of 256", INPUTS(randn({100000, 256}), randint(0, 100000, {256})),
     BODY(embedding(in[1], in[0])), 1},
    {"embedding_bag [10000,64] of 512 x 16",
     INPUTS(randn({10000, 64}), randint(0, 10000, {512, 16})), BODY(embedding_bag(in[1], in[0])),
     1},
    {"masked selection [1000,1000]", INPUTS(table(), gt(table(), 0)), BODY(in[0][in[1]]), 0, true},
    {"nonzero [1000,1000]", INPUTS(gt(table(), 0)), BODY(nonzero(in[0])), 0, true},
    {"flip axis 0 [1000,1000]", INPUTS(table()), BODY(flip(in[0], {0}))},
    {"flip axis 1 [1000,1000]", INPUTS(table()), BODY(flip(in[0], {1})), 1},
    {"roll both [1000,1000]", INPUTS(table()), BODY(roll(in[0], {5, 7}, {0, 1})), 1},
    {"repeat [1000,1000] of [1000,500]", INPUTS(randn({1000, 500})), BODY(repeat(in[0], {1, 2})),
     1},
    {"repeat_interleave axis 1 [1000,1000]", INPUTS(randn({1000, 500})),
     BODY(repeat_interleave(in[0], 2, 1)), 1},
    {"pad [32,384]", INPUTS(randn({32, 384})), BODY(pad(in[0], {1, 1, 1, 1}))},
    {"pad [1000,1000] by 3", INPUTS(table()), BODY(pad(in[0], {3, 3, 3, 3})), 1},
    {"pad reflected [8,16,64,64] by 3", INPUTS(images()),
     BODY(pad(in[0], {3, 3, 3, 3}, PadMode::Reflect)), 1},
    {"transposed copy [1000,1000]", INPUTS(table()), BODY(transpose(in[0], 0, 1))},
    {"permuted copy [100,100,100]", INPUTS(randn({100, 100, 100})),
     BODY(permute(in[0], {2, 0, 1}))},
    {"tril [1000,1000]", INPUTS(table()), BODY(tril(in[0])), 1},
    {"diag_embed [256,64]", INPUTS(randn({256, 64})), BODY(diag_embed(in[0])), 1},
    {"concat axis 1 [1000,1000]", INPUTS(randn({1000, 500})), BODY(concat({in[0], in[0]}, 1))},
    {"where [1000,1000]", INPUTS(table(), randn({1000}), gt(table(), 0)),
     BODY(where(in[2], in[0], in[1])), 1},
    {"one_hot [1000] of 1,000", INPUTS(randint(0, 1000, {1000})), BODY(one_hot(in[0], 1000))},
    {"unfold 3 x 3 [8,16,64,64]", INPUTS(images()),
     BODY(unfold(in[0], {.kernel = 3, .padding = 1})), 1},
    {"fold 3 x 3 [8,16,64,64]", INPUTS(randn({8, 144, 4096})),
     BODY(fold(in[0], 64, {.kernel = 3, .padding = 1})), 1},
    {"pixel_shuffle [8,16,64,64]", INPUTS(images()), BODY(pixel_shuffle(in[0], 2)), 1},
    {"kron [32,32] x [32,32]", INPUTS(randn({32, 32}), randn({32, 32})), BODY(kron(in[0], in[1])),
     2},
};

const Row kReductions[] = {
    {"softmax axis 0 [1000,1000]", INPUTS(table()), BODY(softmax(in[0], 0)), 1},
    {"softmax axis 1 [1000,1000]", INPUTS(table()), BODY(softmax(in[0], 1)), 1},
    {"argmax axis 0 [1000,1000]", INPUTS(table()), BODY(argmax(in[0], 0))},
    {"argmax axis 1 [1000,1000]", INPUTS(table()), BODY(argmax(in[0], 1))},
    {"sum axis 0 [1000,1000]", INPUTS(table()), BODY(sum(in[0], {0})), 1},
    {"sum axis 1 [1000,1000]", INPUTS(table()), BODY(sum(in[0], {1}))},
    {"sum axes 0, 2, 3 [8,16,64,64]", INPUTS(images()), BODY(sum(in[0], {0, 2, 3}))},
    {"sum int64 axis 0 [1000,1000]", INPUTS(places()), BODY(sum(in[0], {0}))},
    {"amax axis 0 [1000,1000]", INPUTS(table()), BODY(amax(in[0], {0})), 1},
    {"var axis 0 [1000,1000]", INPUTS(table()), BODY(var(in[0], {0})), 1},
    {"logsumexp axis 0 [1000,1000]", INPUTS(table()), BODY(logsumexp(in[0], {0})), 1},
    {"prod axis 1 [1000,1000]", INPUTS(near_one()), BODY(prod(in[0], {1})), 1},
    {"prod axis 0 [1000,1000]", INPUTS(near_one()), BODY(prod(in[0], {0})), 1},
    {"prod of 1,000,000", INPUTS(near_one()), BODY(prod(in[0]))},
    {"norm p = 3 axis 1 [1000,1000]", INPUTS(table()), BODY(vector_norm(in[0], 3, 1)), 1},
    {"cumsum axis 0 [1000,1000]", INPUTS(table()), BODY(cumsum(in[0], 0)), 1},
    {"cumsum axis 1 [1000,1000]", INPUTS(table()), BODY(cumsum(in[0], 1)), 1},
    {"cumsum int64 axis 1 [1000,1000]", INPUTS(places()), BODY(cumsum(in[0], 1))},
    {"cumsum of 1,000,000", INPUTS(line()), BODY(cumsum(in[0], 0))},
    {"cumprod axis 0 [1000,1000]", INPUTS(near_one()), BODY(cumprod(in[0], 0)), 1},
    {"cumprod axis 1 [1000,1000]", INPUTS(near_one()), BODY(cumprod(in[0], 1)), 1},
    {"cummax axis 1 [1000,1000]", INPUTS(table()), BODY(cummax(in[0], 1).values), 1},
    {"cummax axis 0 [1000,1000]", INPUTS(table()), BODY(cummax(in[0], 0).values)},
    {"logcumsumexp axis 1 [1000,1000]", INPUTS(table()), BODY(logcumsumexp(in[0], 1)), 1},
    {"sort axis 1 [1000,1000]", INPUTS(table()), BODY(sort(in[0], 1).values), 1},
    {"sort axis 0 [1000,1000]", INPUTS(table()), BODY(sort(in[0], 0).values)},
    {"argsort of 1,000,000", INPUTS(line()), BODY(argsort(in[0], 0, false, true))},
    {"topk 5 of axis 1 [1000,1000]", INPUTS(table()), BODY(topk(in[0], 5, 1).values)},
    {"topk 5 of axis 0 [1000,1000]", INPUTS(table()), BODY(topk(in[0], 5, 0).values)},
    {"topk 100 of 1,000,000", INPUTS(line()), BODY(topk(in[0], 100, 0).values)},
    {"median axis 1 [1000,1000]", INPUTS(table()), BODY(median(in[0], 1).values), 1},
    {"median of 1,000,000", INPUTS(table()), BODY(median(in[0]))},
    {"kthvalue 100 axis 1 [1000,1000]", INPUTS(table()), BODY(kthvalue(in[0], 100, 1).values)},
    {"quantile axis 1 [1000,1000]", INPUTS(table()), BODY(quantile(in[0], 0.3, 1)), 1},
    {"quantile of 1,000,000", INPUTS(table()), BODY(quantile(in[0], 0.3))},
    {"mode axis 1 [1000,1000]", INPUTS(randint(0, 50, {1000, 1000})), BODY(mode(in[0], 1).values)},
    {"unique of 1,000,000 int64", INPUTS(randint(0, 1000, {1000000})), BODY(unique(in[0]).inverse),
     0, true},
    {"unique of 1,000,000", INPUTS(line()), BODY(unique(in[0]).inverse), 0, true},
    {"searchsorted 1,000,000 in 1,000", INPUTS(sort(randn({1000})).values, line()),
     BODY(searchsorted(in[0], in[1]))},
    {"bincount of 1,000,000", INPUTS(randint(0, 1000, {1000000})), BODY(bincount(in[0])), 0, true},
    {"histc of 1,000,000", INPUTS(line()), BODY(histc(in[0], 100, -3, 3))},
    {"cdist [500,64]", INPUTS(randn({500, 64}), randn({500, 64})), BODY(cdist(in[0], in[1])), 2},
    {"cdist p = 1 [500,64]", INPUTS(randn({500, 64}), randn({500, 64})),
     BODY(cdist(in[0], in[1], 1)), 2},
    {"cov [64,4096]", INPUTS(randn({64, 4096})), BODY(cov(in[0])), 1},
    {"layer_norm [1000,1000]", INPUTS(table(), randn({1000}), randn({1000})),
     BODY(layer_norm(in[0], {1000}, in[1], in[2])), 3},
    {"group_norm [8,16,64,64]", INPUTS(images(), randn({16}), randn({16})),
     BODY(group_norm(in[0], 4, in[1], in[2])), 3},
};

const Row kElementwise[] = {
    {"remainder [1000,1000]", INPUTS(100.0 * table(), positive()), BODY(remainder(in[0], in[1])),
     2},
    {"remainder by 3 [1000,1000]", INPUTS(100.0 * table()), BODY(remainder(in[0], 3))},
    {"remainder float64 [512,512]", INPUTS(100.0 * wide({512, 512}), wide({512, 512})),
     BODY(remainder(in[0], in[1]))},
    {"remainder int64 [1000,1000]", INPUTS(places(), places() + 1), BODY(remainder(in[0], in[1]))},
    {"fmod [1000,1000]", INPUTS(100.0 * table(), positive()), BODY(fmod(in[0], in[1])), 2},
    {"floor_divide [1000,1000]", INPUTS(100.0 * table(), positive()),
     BODY(floor_divide(in[0], in[1]))},
    {"floor_divide int64 [1000,1000]", INPUTS(places(), places() + 1),
     BODY(floor_divide(in[0], in[1]))},
    {"exp float64 [512,512]", INPUTS(wide({512, 512})), BODY(exp(in[0]))},
    {"tanh float64 [512,512]", INPUTS(wide({512, 512})), BODY(tanh(in[0]))},
    {"pow [1000,1000]", INPUTS(positive(), positive()), BODY(pow(in[0], in[1])), 2},
    {"lerp [1000,1000]", INPUTS(table(), table(), unit()), BODY(lerp(in[0], in[1], in[2])), 3},
    {"hypot [1000,1000]", INPUTS(table(), table()), BODY(hypot(in[0], in[1])), 2},
    {"logaddexp [1000,1000]", INPUTS(table(), table()), BODY(logaddexp(in[0], in[1])), 2},
    {"xlogy [1000,1000]", INPUTS(table(), positive()), BODY(xlogy(in[0], in[1])), 2},
    {"gelu [1000,1000]", INPUTS(table()), BODY(gelu(in[0])), 1},
    {"softplus [1000,1000]", INPUTS(table()), BODY(softplus(in[0])), 1},
    {"masked_fill [1000,1000]", INPUTS(table(), gt(table(), 0)), BODY(masked_fill(in[0], in[1], 0)),
     1},
    {"nan_to_num [1000,1000]", INPUTS(table()), BODY(nan_to_num(in[0])), 1},
    {"isin [1000000] of 100", INPUTS(randint(0, 1000, {1000000}), randint(0, 1000, {100})),
     BODY(isin(in[0], in[1]))},
    {"gcd int64 [1000,1000]", INPUTS(places(), places()), BODY(gcd(in[0], in[1]))},
    {"erfc [1000,1000]", INPUTS(table()), BODY(erfc(in[0])), 1},
    {"erfinv [1000,1000]", INPUTS(unit()), BODY(erfinv(in[0])), 1},
    {"lgamma [1000,1000]", INPUTS(positive()), BODY(lgamma(in[0])), 1},
    {"digamma [1000,1000]", INPUTS(positive()), BODY(digamma(in[0])), 1},
    {"polygamma 1 [1000,1000]", INPUTS(positive()), BODY(polygamma(1, in[0]))},
    {"igamma [1000,1000]", INPUTS(positive(), positive()), BODY(igamma(in[0], in[1]))},
    {"i0 [1000,1000]", INPUTS(table()), BODY(i0(in[0])), 1},
    {"i1e [1000,1000]", INPUTS(table()), BODY(i1e(in[0])), 1},
    {"bessel_j0 [1000,1000]", INPUTS(positive()), BODY(bessel_j0(in[0]))},
    {"sinc [1000,1000]", INPUTS(table()), BODY(sinc(in[0])), 1},
    {"ndtri [1000,1000]", INPUTS(unit()), BODY(ndtri(in[0])), 1},
    {"zeta [1000,1000]", INPUTS(1.0 + positive(), positive()), BODY(zeta(in[0], in[1]))},
};

const Row kCreation[] = {
    {"arange of 1,000,000", INPUTS(), BODY((void)in, arange(1000000)), 0, true},
    {"linspace of 1,000,000", INPUTS(), BODY((void)in, linspace(0, 1, 1000000)), 0, true},
    {"eye 1000", INPUTS(), BODY((void)in, eye(1000)), 0, true},
    {"rand of 1,000,000", INPUTS(), BODY((void)in, rand({1000000})), 0, true},
    {"randn of 1,000,000", INPUTS(), BODY((void)in, randn({1000000})), 0, true},
    {"randint of 1,000,000", INPUTS(), BODY((void)in, randint(0, 1000, {1000000})), 0, true},
    {"randperm of 1,000,000", INPUTS(), BODY((void)in, randperm(1000000)), 0, true},
    {"bernoulli [1000,1000]", INPUTS(unit()), BODY(bernoulli(in[0])), 0, true},
    {"exponential of 1,000,000", INPUTS(), BODY((void)in, exponential({1000000})), 0, true},
    {"multinomial 10,000 of 1,000", INPUTS(rand({1000})), BODY(multinomial(in[0], 10000, true)), 0,
     true},
};

const Row kProducts[] = {
    {"matmul float64 512", INPUTS(wide({512, 512}), wide({512, 512})), BODY(matmul(in[0], in[1]))},
    {"matmul float64 512 transposed", INPUTS(wide({512, 512}), wide({512, 512})),
     BODY(matmul(in[0], transpose(in[1], 0, 1)))},
    {"matmul float32 512", INPUTS(randn({512, 512}), randn({512, 512})), BODY(matmul(in[0], in[1])),
     2},
    {"matrix times vector 2048", INPUTS(randn({2048, 2048}), randn({2048})),
     BODY(matmul(in[0], in[1])), 2},
    {"vector times matrix 2048", INPUTS(randn({2048, 2048}), randn({2048})),
     BODY(matmul(in[1], in[0])), 2},
    {"matrix times vector float64 1024", INPUTS(wide({1024, 1024}), wide({1024})),
     BODY(matmul(in[0], in[1]))},
    {"products [1024,8,8]", INPUTS(randn({1024, 8, 8}), randn({1024, 8, 8})),
     BODY(matmul(in[0], in[1])), 2},
    {"products [4096,4,4]", INPUTS(randn({4096, 4, 4}), randn({4096, 4, 4})),
     BODY(matmul(in[0], in[1])), 2},
    {"products [256,32,32]", INPUTS(randn({256, 32, 32}), randn({256, 32, 32})),
     BODY(matmul(in[0], in[1])), 2},
    {"products float64 [256,16,16]", INPUTS(wide({256, 16, 16}), wide({256, 16, 16})),
     BODY(matmul(in[0], in[1]))},
    {"einsum bhqd,bhkd->bhqk [8,8,128,64]", INPUTS(randn({8, 8, 128, 64}), randn({8, 8, 128, 64})),
     BODY(einsum("bhqd,bhkd->bhqk", {in[0], in[1]})), 2},
    {"einsum ij,ij->i [1000,1000]", INPUTS(table(), table()),
     BODY(einsum("ij,ij->i", {in[0], in[1]})), 2},
    {"outer [1000] x [1000]", INPUTS(randn({1000}), randn({1000})), BODY(outer(in[0], in[1])), 2},
    {"bilinear [256,64] x [256,64]",
     INPUTS(randn({256, 64}), randn({256, 64}), randn({32, 64, 64})),
     BODY(bilinear(in[0], in[1], in[2])), 3},
    {"linalg.solve [64,32,32]", INPUTS(matrices(), randn({64, 32, 8})),
     BODY(linalg::solve(in[0], in[1])), 2},
    {"linalg.inv [64,32,32]", INPUTS(matrices()), BODY(linalg::inv(in[0])), 1},
    {"linalg.det [64,32,32]", INPUTS(matrices()), BODY(linalg::det(in[0])), 1},
    {"linalg.cholesky [64,32,32]", INPUTS(definite()), BODY(linalg::cholesky(in[0])), 1},
    {"linalg.qr [64,32,32]", INPUTS(matrices()), BODY(linalg::qr(in[0]).q), 1},
    {"linalg.eigh [64,32,32]", INPUTS(definite()), BODY(linalg::eigh(in[0]).values), 1},
    {"linalg.svd [64,32,32]", INPUTS(matrices()), BODY(linalg::svd(in[0], false).s), 1},
    {"linalg.solve 512", INPUTS(randn({512, 512}) + 30.0 * eye(512), randn({512, 8})),
     BODY(linalg::solve(in[0], in[1])), 2},
    {"linalg.eigh 256", INPUTS(randn({256, 256})), BODY(linalg::eigh(in[0]).values)},
    {"matrix_exp [64,32,32]", INPUTS(0.1 * matrices()), BODY(linalg::matrix_exp(in[0])), 1},
    {"fft [1000,1024]", INPUTS(randn({1000, 1024})), BODY(fft::fft(Complex(in[0])).real), 1},
    {"rfft [1000,1024]", INPUTS(randn({1000, 1024})), BODY(fft::rfft(in[0]).real), 1},
    {"rfft [1000,1000]", INPUTS(table()), BODY(fft::rfft(in[0]).real)},
    {"fft [100,1009]", INPUTS(randn({100, 1009})), BODY(fft::fft(Complex(in[0])).real), 1},
    {"fft2 [16,256,256]", INPUTS(randn({16, 256, 256})), BODY(fft::fft2(Complex(in[0])).real)},
    {"irfft of rfft [1000,1024]", INPUTS(randn({1000, 1024})), BODY(fft::irfft(fft::rfft(in[0])))},
    {"stft 400 of [4,16000]", INPUTS(randn({4, 16000})),
     BODY(stft(in[0], {.size = 400, .hop = 160}).real)},
};

const Row kImages[] = {
    {"conv2d 3 x 3 [8,16,64,64]", INPUTS(images(), randn({32, 16, 3, 3})),
     BODY(conv2d(in[0], in[1], {}, {.padding = 1})), 2},
    {"conv2d 2 x 2 stride 2 [8,16,64,64]", INPUTS(images(), randn({32, 16, 2, 2})),
     BODY(conv2d(in[0], in[1], {}, {.stride = 2})), 2},
    {"conv2d 4 x 4 stride 4 [8,16,64,64]", INPUTS(images(), randn({32, 16, 4, 4})),
     BODY(conv2d(in[0], in[1], {}, {.stride = 4})), 2},
    {"conv2d 16 x 16 stride 16 [8,3,224,224]",
     INPUTS(randn({8, 3, 224, 224}), randn({192, 3, 16, 16})),
     BODY(conv2d(in[0], in[1], {}, {.stride = 16})), 2},
    {"conv2d depthwise 3 x 3 [32,256,2,2]", INPUTS(randn({32, 256, 2, 2}), randn({256, 1, 3, 3})),
     BODY(conv2d(in[0], in[1], {}, {.padding = 1, .groups = 256})), 2},
    {"conv2d depthwise 3 x 3 [32,256,4,4]", INPUTS(randn({32, 256, 4, 4}), randn({256, 1, 3, 3})),
     BODY(conv2d(in[0], in[1], {}, {.padding = 1, .groups = 256})), 2},
    {"conv2d depthwise 3 x 3 [8,64,56,56]", INPUTS(randn({8, 64, 56, 56}), randn({64, 1, 3, 3})),
     BODY(conv2d(in[0], in[1], {}, {.padding = 1, .groups = 64})), 2},
    {"conv1d 9 [8,64,1000]", INPUTS(randn({8, 64, 1000}), randn({64, 64, 9})),
     BODY(conv1d(in[0], in[1], {}, {.padding = 4})), 2},
    {"conv3d 3 [2,8,16,32,32]", INPUTS(randn({2, 8, 16, 32, 32}), randn({16, 8, 3, 3, 3})),
     BODY(conv3d(in[0], in[1], {}, {.padding = 1})), 2},
    {"conv_transpose2d 2 x 2 stride 2 [8,16,64,64]", INPUTS(images(), randn({16, 16, 2, 2})),
     BODY(conv_transpose2d(in[0], in[1], {}, {.stride = 2})), 2},
    {"interpolate bilinear [8,16,64,64] to 128", INPUTS(images()),
     BODY(interpolate(in[0], {128, 128}, Interpolation::Linear)), 1},
    {"interpolate bicubic [8,16,64,64] to 128", INPUTS(images()),
     BODY(interpolate(in[0], {128, 128}, Interpolation::Cubic)), 1},
    {"interpolate nearest [8,16,64,64] to 128", INPUTS(images()),
     BODY(interpolate(in[0], {128, 128}, Interpolation::Nearest)), 1},
    {"interpolate area [8,16,64,64] to 24", INPUTS(images()),
     BODY(interpolate(in[0], {24, 24}, Interpolation::Area)), 1},
    {"grid_sample [8,16,64,64]", INPUTS(images(), 2.0 * rand({8, 64, 64, 2}) - 1.0),
     BODY(grid_sample(in[0], in[1])), 2},
    {"affine_grid [8,64,64]", INPUTS(randn({8, 2, 3})), BODY(affine_grid(in[0], {8, 3, 64, 64})),
     1},
    {"max_pool1d 3 [8,64,1000]", INPUTS(randn({8, 64, 1000})),
     BODY(max_pool1d(in[0], {.kernel = 3, .stride = 2})), 1},
    {"max_pool3d 2 [2,8,16,32,32]", INPUTS(randn({2, 8, 16, 32, 32})), BODY(max_pool3d(in[0])), 1},
    {"avg_pool3d 2 [2,8,16,32,32]", INPUTS(randn({2, 8, 16, 32, 32})), BODY(avg_pool3d(in[0])), 1},
    {"adaptive_avg_pool2d 7 [8,64,32,32]", INPUTS(randn({8, 64, 32, 32})),
     BODY(adaptive_avg_pool2d(in[0], 7)), 1},
    {"adaptive_max_pool2d 7 [8,64,32,32]", INPUTS(randn({8, 64, 32, 32})),
     BODY(adaptive_max_pool2d(in[0], 7)), 1},
    {"lp_pool2d 2 [8,16,64,64]", INPUTS(images()), BODY(lp_pool2d(in[0], 2)), 1},
    {"max_unpool2d 2 [8,16,32,32]",
     INPUTS(max_pool2d_with_indices(images()).values, max_pool2d_with_indices(images()).indices),
     BODY(max_unpool2d(in[0], in[1])), 1},
};

const Row kLosses[] = {
    {"cross_entropy [1000,1000]", INPUTS(table(), randint(0, 1000, {1000})),
     BODY(cross_entropy(in[0], in[1])), 1},
    {"nll_loss [1000,1000]", INPUTS(log_softmax(table()), randint(0, 1000, {1000})),
     BODY(nll_loss(in[0], in[1])), 1},
    {"binary_cross_entropy_with_logits [1000,1000]", INPUTS(table(), unit()),
     BODY(binary_cross_entropy_with_logits(in[0], in[1])), 1},
    {"huber_loss [1000,1000]", INPUTS(table(), table()), BODY(huber_loss(in[0], in[1])), 1},
    {"kl_div [1000,1000]", INPUTS(log_softmax(table()), softmax(table())),
     BODY(kl_div(in[0], in[1])), 1},
    {"ctc_loss [100,16,32]",
     INPUTS(log_softmax(randn({100, 16, 32})), randint(1, 32, {16, 20}),
            full({16}, 100, DType::Int64), full({16}, 20, DType::Int64)),
     BODY(ctc_loss(in[0], in[1], in[2], in[3])), 1},
    {"triplet_margin_loss [1000,256]",
     INPUTS(randn({1000, 256}), randn({1000, 256}), randn({1000, 256})),
     BODY(triplet_margin_loss(in[0], in[1], in[2])), 3},
    {"cosine_embedding_loss [1000,256]",
     INPUTS(randn({1000, 256}), randn({1000, 256}),
            2.0 * cast(gt(randn({1000}), 0), DType::Float32) - 1.0),
     BODY(cosine_embedding_loss(in[0], in[1], in[2])), 2},
    {"multi_margin_loss [1000,100]", INPUTS(randn({1000, 100}), randint(0, 100, {1000})),
     BODY(multi_margin_loss(in[0], in[1])), 1},
    {"cosine_similarity [1000,1000]", INPUTS(table(), table()),
     BODY(cosine_similarity(in[0], in[1])), 2},
};

// A row that is ready to run: the inputs are computed, and the function is compiled.
class Prepared {
 public:
  Prepared(const Row& row, bool trains) : row_(row), in_(row.inputs()) {
    for (Tensor& x : in_) x = x.compute();
    if (row.reads) return;
    f_ = compile([&row, trains](const Tensors& in) {
      const Tensor y = row.body(in);
      Tensors out{y};
      if (!trains) return out;
      // A gradient that is not constant, as in a network.
      const Tensors wanted(in.begin(), in.begin() + row.trained);
      for (const Tensor& g : grad(sum(y * detach(y)), wanted)) out.push_back(g);
      return out;
    });
  }
  void call() {
    if (row_.reads) {
      (void)row_.body(in_).compute();
    } else {
      const Outputs out = f_(in_);
    }
  }

 private:
  const Row& row_;
  Tensors in_;
  CompiledFunction f_;
};

bool counts_cpu = false;

double now() {
  if (counts_cpu) return 1e6 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

void time_of(Prepared& row, double seconds) {
  std::vector<double> times;
  for (int k = 0; k < 2; ++k) row.call();
  for (const double end = now() + 1e6 * seconds; now() < end || times.size() < 3;) {
    const double start = now();
    row.call();
    times.push_back(now() - start);
  }
  std::sort(times.begin(), times.end());
  std::cout << times.size() << '\t' << times[0] << '\t' << times[times.size() / 2] << std::endl;
}

std::map<std::string, const Row*> all_rows() {
  std::map<std::string, const Row*> rows;
  const auto add = [&](const auto& table) {
    for (const Row& row : table) rows[row.name] = &row;
  };
  add(kRearranging), add(kReductions), add(kElementwise), add(kCreation), add(kProducts),
      add(kImages), add(kLosses);
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  set_threads(argc > 1 ? std::stoi(argv[1]) : 2);
  counts_cpu = argc > 2;
  const auto rows = all_rows();
  for (const auto& [name, row] : rows)
    std::cout << name << '\t' << (row->trained > 0 ? "train" : "call") << '\n';
  std::cout << std::endl;
  std::map<std::string, Prepared> prepared;  // one row at a time
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name, phase, seconds;
    std::getline(words, name, '\t'), std::getline(words, phase, '\t'), std::getline(words, seconds);
    const std::string key = name + phase;
    if (prepared.count(key) == 0) {
      prepared.clear();
      prepared.try_emplace(key, *rows.at(name), phase == "train");
    }
    time_of(prepared.at(key), std::stod(seconds));
  }
  return 0;
}

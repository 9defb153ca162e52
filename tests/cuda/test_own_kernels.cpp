// Own kernels on a GPU (the emulated one in CI): the values and derivatives of the CPU; fused,
// replayed, in loops, in training, on several GPUs; sources that do not compile.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include <tenon/tenon.h>

#include "../run/own_kernels.h"
#include "base/philox.h"
#include "cuda/cuda.h"
#include "gpu.h"
#include "graph/node.h"
#include "ops/function_rule.h"

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;

Tensor drawn(const Shape& shape, std::uint64_t seed, DType dtype = DType::Float32) {
  return randn(shape, DType::Float32, Generator(seed)).to(dtype).compute();
}
Tensor there(const Tensor& x) { return to(x, device("cuda")).compute(); }

double difference(const Tensor& found, const Tensor& expected) {
  REQUIRE(found.shape() == expected.shape());
  if (found.numel() == 0) return 0;
  const Tensor a = cast(to(found, Device{}), DType::Float64), b = cast(expected, DType::Float64);
  return abs(a - b).max().item();
}

std::string what_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "";
}

CudaLaunch flat(const KernelTypes& types) {
  const std::int64_t count = types.results[0].shape.numel();
  return {.grid = {(count + 127) / 128}, .block = {128}, .numbers = {count}};
}

OperationCode flat_code(const std::string& body,
                        const std::string& parameters = "const T* x, Result0* y") {
  return {.infer = [](std::span<const TensorType> in) { return in[0]; },
          .cuda = {.source = "extern \"C\" __global__ void flat(" + parameters +
                             ", long long count) {\n  const long long i = blockIdx.x * 128ll + "
                             "threadIdx.x;\n  if (i < count) {\n" +
                             body + "\n}\n}\n",
                   .entry = "flat",
                   .launch = flat}};
}

// The sum of the results of row_norms over a scan, and its gradient.
Tensors looped(const std::function<Tensor(const Tensor&)>& f, const Tensor& rows) {
  const auto [last, all] = scan(
      [&](const Tensor& carry, const Tensor& row) {
        const Tensor next = f(carry + row);
        return std::pair(next, next);
      },
      to(ones({2, 3}), rows.device()), rows);
  const Tensor value = (last * 2 + all.sum(0)).sum();
  return {value, grad(value, rows)};
}

}  // namespace

TEST_CASE("GPU own kernels: element-wise ones in every dtype, with derivatives") {
  if (!test::has_gpu()) return;
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16}) {
    const Tensor x = drawn({7, 30}, 1, dtype), b = drawn({30}, 2, dtype);
    const auto all = [](const Tensor& s, const Tensor& t) {
      const Tensor y = test::swish()(transpose(s) * 0.5, reshape(t, {30, 1}));
      const Tensors first = grad(y.sum(), Tensors{s, t});
      return Tensors{y, first[0], first[1], grad(square(first[0]).sum(), s)};
    };
    const Tensors found = all(there(x), there(b)), expected = all(x, b);
    const double tolerance = dtype == DType::Float64   ? 1e-13
                             : dtype == DType::Float32 ? 1e-5
                             : dtype == DType::Float16 ? 2e-2
                                                       : 2e-1;
    for (std::size_t k = 0; k < found.size(); ++k) {
      CHECK(found[k].dtype() == dtype);
      CHECK(difference(found[k], expected[k]) < tolerance);
    }
    const Tensor functions = drawn({333}, 3, dtype);
    CHECK(difference(test::many_functions()(there(functions)), test::many_functions()(functions)) <
          tolerance);
  }
  CHECK(test::blend()(there(drawn({0, 3}, 1)), there(ones({3})), there(ones({3}))).numel() == 0);
}

TEST_CASE("GPU own kernels: element-wise ones are fused with neighbours, products and sums") {
  if (!test::has_gpu()) return;
  const Tensor x = drawn({40, 48}, 1), w = drawn({48, 64}, 2), b = drawn({48}, 3);
  const auto rows = [](const Tensor& s, const Tensor& t) {
    return (test::swish()(s * 2, t) + test::blend()(s, t, s)).sum(1);
  };
  CHECK(plan({rows(there(x), there(b))}).step_count() == 1);
  CHECK(difference(rows(there(x), there(b)), rows(x, b)) < 1e-4);
  const auto columns = [](const Tensor& s, const Tensor& t) {
    return (test::swish()(s, t) * test::many_functions()(s)).sum(0);
  };
  CHECK(difference(columns(there(x), there(b)), columns(x, b)) < 1e-3);
  const auto product = [](const Tensor& s, const Tensor& t) {
    return test::swish()(matmul(test::many_functions()(s), t), full({}, 1.5)) * 2;
  };
  CHECK(difference(product(there(x), there(w)), product(x, w)) < 1e-3);
}

TEST_CASE("GPU own kernels: an operation on rows in every dtype, with derivatives") {
  if (!test::has_gpu()) return;
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16})
    for (const Shape& shape : {Shape{5, 7}, Shape{1, 1}, Shape{0, 4}, Shape{3, 100}}) {
      const Tensor x = drawn(shape, 1, dtype);
      const auto all = [](const Tensor& t) {
        const Tensors out = test::row_norms().apply({t});
        const Tensor first = grad((out[0] * out[1] + out[0]).sum(), t);
        return Tensors{out[0], out[1], first, grad(square(first).sum(), t)};
      };
      const Tensors found = all(there(x)), expected = all(x);
      const double tolerance = item_size(dtype) == 8 ? 1e-12 : item_size(dtype) == 4 ? 1e-4 : 0.3;
      for (std::size_t k = 0; k < (shape[1] == 1 ? 2 : found.size()); ++k)
        CHECK(difference(found[k], expected[k]) < tolerance);
    }
  const Tensor x = drawn({6, 4}, 4);
  CHECK(difference(test::row_norms().apply({transpose(there(x)) * 2})[1],
                   test::composed_row_norms(transpose(x) * 2)[1]) < 1e-5);
}

TEST_CASE("GPU own kernels: inputs of several dtypes, none, and results that nothing reads") {
  if (!test::has_gpu()) return;
  OperationCode code =
      flat_code("y[i] = keep[i] ? x[i] * scale[0] + index[i] : 0;",
                "const T* x, const Input1* keep, const Input2* scale, const Input3* "
                "index, Result0* y");
  const Operation masked("masked", code);
  const Tensor x = drawn({300}, 1), keep = gt(x, 0.0).compute(), index = arange(0, 300).compute();
  const Tensor scale = full({1}, 2, DType::Float64).compute();
  const Tensor expected = where(keep, x * 2 + cast(index, DType::Float32), zeros_like(x));
  CHECK(difference(masked(there(x), there(keep), there(scale), there(index)), expected) < 1e-4);

  const Operation counter(
      "counter", {.infer =
                      [](std::span<const TensorType>) {
                        return TensorType{DType::Int64, {200}};
                      },
                  .cuda = {.source = "extern \"C\" __global__ void count(Result0* y, long long n, "
                                     "double step) {\n  const int i = threadIdx.x + blockIdx.x * "
                                     "blockDim.x;\n  if (i < n) y[i] = T(step * i);\n}",
                           .entry = "count",
                           .launch =
                               [](const KernelTypes& types) {
                                 return CudaLaunch{
                                     .grid = {2},
                                     .block = {100},
                                     .numbers = {types.results[0].shape[0], types.numbers[0]}};
                               },
                           .numbers = {2.5}}});
  set_device("cuda");
  const Tensor counted = counter();
  set_device("cpu");
  CHECK(counted.device() == device("cuda"));
  CHECK(counted.to_vector<std::int64_t>()[3] == 7);
  CHECK(counted.to_vector<std::int64_t>()[199] == 497);
}

TEST_CASE("GPU own kernels: the library's random numbers, bit for bit") {
  if (!test::has_gpu()) return;
  OperationCode code =
      flat_code("y[i] = tenon::cuda::unit_float(tenon::cuda::philox(7, i / 4, x[0]).word[i % 4]);");
  code.cuda.source = "#include \"cuda/kernels/philox.cuh\"\n" + code.cuda.source;
  code.infer = [](std::span<const TensorType>) { return TensorType{DType::Float32, {50}}; };
  const std::vector<float> found =
      Operation("random", code)(there(full({1}, 3, DType::Int64))).to_vector<float>();
  for (std::uint64_t i = 0; i < 50; ++i) CHECK(found[i] == uniform01(philox(7, i / 4, 3).v[i % 4]));
}

TEST_CASE("GPU own kernels: compiled steps that assign are replayed, in several sizes") {
  if (!test::has_gpu()) return;
  const auto course = [](Device home) {
    const Tensor w = variable(to(drawn({6}, 2), home));
    const CompiledFunction step = compile([&](const Tensors& in) {
      const Tensors out = test::row_norms().apply({in[0] * w});
      const Tensor loss = (test::swish()(out[0], w) * out[1]).sum() + square(out[1]).sum();
      return Tensors{loss, assign(w, w - 0.01 * grad(loss, w))};
    });
    std::vector<double> losses;
    for (const std::int64_t rows : {4, 4, 4, 4, 9, 5, 9, 4})
      losses.push_back(step({to(drawn({rows, 6}, 3), home)})[0].item());
    return losses;
  };
  const std::vector<double> ours = course(device("cuda")), theirs = course({});
  for (std::size_t k = 0; k < ours.size(); ++k)
    CHECK(ours[k] == doctest::Approx(theirs[k]).epsilon(1e-4));
}

TEST_CASE("GPU own kernels: in the bodies of loops and branches") {
  if (!test::has_gpu()) return;
  const Tensor rows = drawn({4, 2, 3}, 5);
  const auto rows_of = [](const Tensor& x) { return test::row_norms().apply({x})[0]; };
  const auto elements_of = [](const Tensor& x) { return test::swish()(x, x * 0.5); };
  const auto branch_of = [&](const Tensor& x) {
    return cond(
        gt(sum(x), 0.0), [&](const Tensors& in) { return Tensors{rows_of(in[0])}; },
        [&](const Tensors& in) { return Tensors{elements_of(in[0])}; }, {x})[0];
  };
  for (const std::function<Tensor(const Tensor&)>& f :
       {std::function<Tensor(const Tensor&)>(rows_of),
        std::function<Tensor(const Tensor&)>(elements_of),
        std::function<Tensor(const Tensor&)>(branch_of)}) {
    const Tensors found = looped(f, there(rows)), expected = looped(f, rows);
    CHECK(difference(found[0], expected[0]) < 1e-4);
    CHECK(difference(found[1], expected[1]) < 1e-4);
  }
}

TEST_CASE("GPU own kernels: a network with own layers trains as on the CPU") {
  if (!test::has_gpu()) return;
  class Gate final : public nn::Module {
   public:
    Tensor forward(const Tensor& x) const override {
      const Tensors out = test::row_norms().apply({x});
      return test::swish()(out[0], out[1]);
    }
  };
  const auto losses = [](const char* where) {
    set_device(where);
    manual_seed(6);
    nn::Sequential net(nn::Linear(6, 16), Gate(), nn::Linear(16, 2));
    optim::Adam adam(net, {.lr = 1e-2});
    const Tensor labels = remainder(cast(arange(0, 48), DType::Int64), 2).compute();
    const Tensor x =
        (randn({48, 6}) * 0.3 + cast(reshape(labels, {48, 1}), DType::Float32)).compute();
    data::Loader loader(data::from_tensors(x, labels, 2), {.batch = 8, .seed = 3});
    train::TrainOptions options;
    options.epochs = 3;
    train::Trainer trainer(net, nn::CrossEntropyLoss(), adam, options);
    std::vector<double> out;
    for (const train::EpochReport& epoch : trainer.fit(loader).epochs)
      out.push_back(epoch.train_loss);
    set_device("cpu");
    return out;
  };
  const std::vector<double> ours = losses("cuda"), theirs = losses("cpu");
  REQUIRE(ours.size() == 3);
  CHECK(ours[2] < ours[0]);
  for (std::size_t k = 0; k < ours.size(); ++k)
    CHECK(ours[k] == doctest::Approx(theirs[k]).epsilon(1e-3));
}

TEST_CASE("GPU own kernels: products and activations of 16 bits around them") {
  if (!test::has_gpu()) return;
  const Tensor x = drawn({64, 32}, 1), w = drawn({32, 48}, 2), b = drawn({48}, 3);
  const auto all = [&](Device home, bool own) {
    const Tensor weights = variable(to(w, home)), bias = to(b, home);
    const Tensor y = matmul(to(x, home), weights);
    const Tensor activation = own ? test::swish()(y, bias) : y * sigmoid(bias * y);
    const Tensors rows =
        own ? test::row_norms().apply({activation}) : test::composed_row_norms(activation);
    const Tensor loss = (matmul(rows[0], transpose(weights)) * to(x, home)).sum() + rows[1].sum();
    return Tensors{loss, grad(loss, weights), rows[0]};
  };
  for (const Precision precision : {Precision::Bf16, Precision::Fp16, Precision::Tf32}) {
    set_precision(precision);
    const Tensors found = all(device("cuda"), true), expected = all(device("cuda"), false);
    compute(found);
    compute(expected);
    set_precision(Precision::Fp32);
    for (std::size_t k = 0; k < found.size(); ++k) {
      CHECK(found[k].dtype() == DType::Float32);
      const Tensor wanted = to(expected[k], Device{});
      CHECK(difference(found[k], wanted) < 0.03 * abs(wanted).max().item());
    }
  }
}

TEST_CASE("GPU own kernels: each GPU computes its part") {
  if (!test::has_gpu() || cuda::gpu_count() < 2) return;
  const Tensor x = drawn({4, 6}, 1), b = drawn({6}, 2);
  Tensors parts;
  for (const char* name : {"cuda:0", "cuda:1"}) {
    const Tensor part = to(x, device(name));
    parts.push_back(test::swish()(test::row_norms().apply({part})[0], to(b, device(name))));
    CHECK(parts.back().device() == device(name));
  }
  const Tensor sum = parts[0] + to(parts[1], device("cuda:0"));
  CHECK(difference(sum, 2 * test::swish()(test::row_norms().apply({x})[0], b)) < 1e-5);
  CHECK_THROWS_AS(test::swish()(to(x, device("cuda:0")), to(b, device("cuda:1"))).compute(), Error);
}

TEST_CASE("GPU own kernels: plans show the operation's name and its source") {
  if (!test::has_gpu()) return;
  const Tensor y = test::row_norms().apply({there(drawn({5, 4}, 1)) * 2})[0];
  const Plan planned = plan({y});
  CHECK(planned.steps().find("row_norms") != std::string::npos);
  CHECK(plan({test::swish()(y, y)}).fusion().find("swish") != std::string::npos);
}

TEST_CASE("GPU own kernels: sources that do not compile, and entries that do not exist") {
  if (!test::has_gpu()) return;
  const Tensor x = there(drawn({5}, 1));
  const Operation wrong("wrong_rows", flat_code("y[i] = no_such_name;"));
  std::string what = what_of([&] { (void)(wrong(x * 2) + 1).compute(); });
  INFO(what);
  CHECK(what.find("wrong_rows: its CUDA source does not compile") == 0);
  CHECK(what.find("no_such_name") != std::string::npos);
  const ElementwiseKernel odd("odd_element", ElementFormula("x + nowhere", {"x"}));
  what = what_of([&] { (void)(odd(x) * 2 + x).compute(); });
  INFO(what);
  CHECK(what.find("odd_element: its CUDA source does not compile") == 0);
  CHECK(what.find("nowhere") != std::string::npos);
  OperationCode code = flat_code("y[i] = x[i];");
  code.cuda.entry = "fla";
  what = what_of([&] { (void)Operation("no_entry", code)(x).compute(); });
  INFO(what);
  CHECK(what.find("no_entry: its CUDA source defines no extern \"C\" __global__ function fla") ==
        0);
  // Later work is right.
  CHECK(difference(Operation("copy", flat_code("y[i] = x[i];"))(x), to(x, Device{})) == 0);
}

TEST_CASE("GPU own kernels: launches that no GPU can do are refused when they are built") {
  if (!test::has_gpu()) return;
  const Tensor x = there(drawn({5}, 1));
  const auto refused = [&](CudaLaunch (*launch)(const KernelTypes&), const char* text) {
    OperationCode code = flat_code("y[i] = x[i];");
    code.cuda.launch = launch;
    CHECK_THROWS_WITH_AS(Operation("odd", code)(x), doctest::Contains(text), ValueError);
  };
  refused([](const KernelTypes&) { return CudaLaunch{.block = {2000}}; }, "odd: a block of 2000");
  refused([](const KernelTypes&) { return CudaLaunch{.block = {0}}; }, "odd: a block of 0");
  refused([](const KernelTypes&) { return CudaLaunch{.grid = {1, 70000}}; }, "70000");
  refused([](const KernelTypes&) { return CudaLaunch{.shared_bytes = -1}; }, "-1 bytes");
  OperationCode code = flat_code("y[i] = x[i];");
  code.cuda.launch = [](const KernelTypes&) { return CudaLaunch{.shared_bytes = 1 << 20}; };
  CHECK_THROWS_WITH_AS(Operation("odd", code)(x).compute(),
                       doctest::Contains("odd: a block asks for 1048576"), ValueError);
}

TEST_CASE("GPU own kernels: without CUDA source the code of the CPU runs, but not in loops") {
  if (!test::has_gpu()) return;
  const Operation rows(
      "host_rows", {.infer =
                        [](std::span<const TensorType> in) {
                          return std::vector<TensorType>{in[0], {in[0].dtype, {in[0].shape[0], 1}}};
                        },
                    .cpu = test::row_norms_on_host});
  const Tensor x = drawn({5, 3}, 1);
  CHECK(difference(rows.apply({there(x)})[0], test::composed_row_norms(x)[0]) < 1e-6);
  const ElementwiseKernel element("host_element",
                                  ElementFormula([](auto v) { return v * v; }, "", {"v"}));
  const Tensor y = element(there(x));
  CHECK(y.device() == device("cuda"));
  CHECK(difference(y, x * x) < 1e-6);
  const Tensor many = there(drawn({4, 2, 3}, 5));
  CHECK_THROWS_AS(looped([&](const Tensor& t) { return rows.apply({t})[0]; }, many), NotSupported);
  CHECK_THROWS_AS(looped([&](const Tensor& t) { return element(t); }, many)[0].compute(),
                  NotSupported);
}

// The emulator does not notice a kernel that reads memory of the host, so the graph is examined.
TEST_CASE("GPU own kernels: what moves a result to the CPU stays a transfer without the function") {
  if (!test::has_gpu()) return;
  const Tensor x = there(drawn({5}, 1));
  const std::vector<Tensor> moved{to(test::swish()(x, x), Device{}) * 2.0};
  const Tensor plain = without_functions(moved)[0], transfer(plain.node()->input(0));
  CHECK(plain.device() == Device{});
  CHECK(transfer.node()->op == Op::ToDevice);
  CHECK(transfer.device() == Device{});
  CHECK(transfer.node()->input(0)->device == x.device());
}

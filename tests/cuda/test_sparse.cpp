// Updates of single rows and sparse tensors on a GPU, real or emulated: as on the CPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/optimizers.h>
#include <tenon/sparse.h>

#include "gpu.h"

using namespace tenon;

namespace {

struct OnDevice {
  explicit OnDevice(const char* name) { set_device(name); }
  ~OnDevice() { set_device("cpu"); }
};

using Work = std::vector<std::vector<double>> (*)();

std::vector<double> host(const Tensor& t) { return cast(t, DType::Float64).to_vector<double>(); }

void check_devices(Work work, double tolerance) {
  if (!test::has_gpu()) return;
  std::vector<std::vector<double>> expected, got;
  {
    const OnDevice cpu("cpu");
    expected = work();
  }
  {
    const OnDevice gpu("cuda");
    got = work();
  }
  REQUIRE(got.size() == expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    REQUIRE(got[k].size() == expected[k].size());
    double most = 0;
    for (std::size_t e = 0; e < got[k].size(); ++e)
      most = std::max(most, std::abs(got[k][e] - expected[k][e]) / (1 + std::abs(expected[k][e])));
    CHECK(most <= tolerance);
  }
}

Tensor filled(const Shape& shape, double by) {
  return cast(reshape(sin(arange(0, shape.numel()).to(DType::Float64) * by + 0.3),
                      Ints(shape.begin(), shape.end())),
              DType::Float32);
}

Tensor numbers(std::vector<std::int64_t> list) {
  const auto n = static_cast<std::int64_t>(list.size());
  return Tensor::from(list, {n});
}

// Few updates of a large table, and as many updates as a small table has rows.
std::vector<std::vector<double>> optimizer_steps() {
  std::vector<std::vector<double>> out;
  for (const char* name : {"sgd", "adagrad", "sparse_adam"})
    for (const std::int64_t rows : {4, 300})
      for (const std::int64_t columns : {1, 5, 260}) {
        const nn::Embedding net(rows, columns, {.sparse = true},
                                {.weight = filled({rows, columns}, 0.7).compute()});
        const auto rule = optim::create(name, net, {.lr = 0.1});
        for (std::int64_t k = 0; k < 4; ++k)
          rule->step(sum(square(net(numbers({3, k % rows, 3, rows - 1, 0, 3})))), {.norm = 3});
        out.push_back(host(net.weight()));
      }
  return out;
}

// The last of equal rows counts, and sums are formed in order.
template <bool kAdds>
std::vector<std::vector<double>> row_updates() {
  std::vector<std::vector<double>> out;
  for (const std::int64_t rows : {7, 900})
    for (const std::int64_t columns : {1, 3, 300}) {
      const Tensor p = variable(filled({rows, columns}, 0.7).compute(), "p");
      const std::int64_t n = 6;
      const Tensor index = numbers({2, 5, 2, rows - 1, 5, 2}),
                   at = broadcast_to(reshape(index, {n, 1}), {n, columns});
      const Tensor updates = filled({n, columns}, 0.9);
      compute({assign(p, kAdds ? scatter_add(p, 0, at, updates) : scatter(p, 0, at, updates))});
      out.push_back(host(p));
      const Tensor none = zeros({0, columns}, DType::Int64);
      compute({assign(p, scatter(p, 0, none, zeros({0, columns})))});
      out.push_back(host(p));
    }
  return out;
}

std::vector<std::vector<double>> sparse_operations() {
  const Tensor indices = Tensor::from<std::int64_t>({5, 0, 5, 2, 0, 5, 1, 4, 1, 0, 4, 3}, {2, 6});
  const Tensor v = variable(filled({6}, 1.7).compute(), "v"),
               b = variable(filled({5, 3}, 0.9).compute(), "b");
  std::vector<std::vector<double>> out;
  for (const bool csr : {false, true}) {
    SparseTensor s = SparseTensor::coo(indices, v, {7, 5});
    if (csr) s = s.to_csr();
    const Tensor y = matmul(s, b), z = matmul(filled({2, 7}, 0.6), s.transpose().transpose());
    out.push_back(host(y));
    out.push_back(host(z));
    for (const Tensor& g : grad(sum(square(y)) + sum(square(z)), std::vector<Tensor>{v, b}))
      out.push_back(host(g));
    out.push_back(host(softmax(s).to_dense()));
    out.push_back(host((s + s).coalesce().values()));
    out.push_back(host((s * filled({5}, 0.4)).to_dense()));
    out.push_back(host(sum(s, {0})));
    out.push_back(host(matmul(s, s.transpose()).values()));
    out.push_back(host((s * s).values()));
    out.push_back(host(sampled_matmul(s, filled({7, 2}, 0.4), filled({2, 5}, 0.3)).values()));
  }
  out.push_back(host(SparseTensor::from_dense(filled({4, 4}, 1)).values()));
  return out;
}

}  // namespace

TEST_CASE("sparse on a GPU: steps of optimizers") { check_devices(optimizer_steps, 1e-5); }
// The values are sines, which the devices round differently.
TEST_CASE("sparse on a GPU: rows are replaced") { check_devices(row_updates<false>, 1e-6); }
TEST_CASE("sparse on a GPU: rows are added") { check_devices(row_updates<true>, 1e-6); }
TEST_CASE("sparse on a GPU: sparse tensors") { check_devices(sparse_operations, 1e-5); }

TEST_CASE("sparse on a GPU: a row out of range is reported, and other rows are updated") {
  if (!test::has_gpu()) return;
  const OnDevice gpu("cuda");
  const Tensor p = variable(zeros({100, 2}).compute(), "p");
  const Tensor at = broadcast_to(reshape(numbers({1, 100}), {2, 1}), {2, 2});
  compute({assign(p, scatter_add(p, 0, at, ones({2, 2})))});
  CHECK_THROWS_AS(p.to_vector<float>(), ValueError);
  CHECK(sum(p).item() == 2);
}

// Sparse tensors against dense float64, with gradients by finite differences.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <tenon/compile.h>
#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/sparse.h>

using namespace tenon;

namespace {

std::vector<double> elements(const Tensor& t) {
  return cast(t, DType::Float64).to_vector<double>();
}

bool is_close(const Tensor& a, const Tensor& b, double tolerance = 1e-12) {
  if (a.shape() != b.shape()) return false;
  const std::vector<double> x = elements(a), y = elements(b);
  for (std::size_t k = 0; k < x.size(); ++k)
    if (!(std::abs(x[k] - y[k]) <= tolerance * (1 + std::abs(y[k])))) return false;
  return true;
}

Tensor filled(const Shape& shape, double by, DType dtype = DType::Float64) {
  return cast(reshape(sin(arange(0, shape.numel()).to(DType::Float64) * by + 0.3),
                      Ints(shape.begin(), shape.end())),
              dtype);
}

Tensor whole(std::vector<std::int64_t> numbers, const Shape& shape) {
  return Tensor::from(numbers, shape);
}

struct Matrix {
  const char* what;
  Tensor indices;
  Shape shape;
  std::int64_t count() const { return indices.size(1); }
};

// Unsorted indices, duplicates, empty rows and columns, and matrices without elements or rows.
std::vector<Matrix> matrices() {
  return {{"sorted", whole({0, 0, 1, 3, 0, 4, 2, 1}, {2, 4}), {4, 5}},
          {"unsorted with duplicates", whole({5, 0, 5, 2, 0, 5, 1, 4, 1, 0, 4, 3}, {2, 6}), {7, 5}},
          {"one element", whole({0, 0}, {2, 1}), {1, 1}},
          {"no elements", zeros({2, 0}, DType::Int64), {3, 4}},
          {"no rows", zeros({2, 0}, DType::Int64), {0, 4}},
          {"no columns", zeros({2, 0}, DType::Int64), {3, 0}}};
}

SparseTensor sparse_of(const Matrix& m, const Tensor& values, bool csr = false) {
  const SparseTensor out = SparseTensor::coo(m.indices, values, m.shape);
  return csr ? out.to_csr() : out;
}

// The dense matrix, added up by the host.
Tensor dense_of(const Matrix& m, const Tensor& values) {
  std::vector<double> out(static_cast<std::size_t>(m.shape.numel()));
  const std::vector<double> v = elements(values);
  const auto at = m.indices.to_vector<std::int64_t>();
  const auto n = static_cast<std::size_t>(m.count());
  for (std::size_t k = 0; k < n; ++k)
    out[static_cast<std::size_t>(at[k] * m.shape[1] + at[n + k])] += v[k];
  return Tensor::from(out, m.shape);
}

// Compares the gradients of a function of tensors, and of the squares of these gradients, with
// central differences.
using Function = std::function<Tensor(const std::vector<Tensor>&)>;
void check_gradients(const Function& f, const std::vector<Tensor>& inputs, bool again = true) {
  std::vector<Tensor> x;
  for (const Tensor& input : inputs) x.push_back(variable(input));
  const auto scalar_of = [&](const std::vector<Tensor>& in) {
    const Tensor y = f(in);
    return sum(y * cos(reshape(arange(0, y.numel()).to(DType::Float64),
                               Ints(y.shape().begin(), y.shape().end()))));
  };
  const std::vector<Tensor> gradients = grad(scalar_of(x), x);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    std::vector<double> at = elements(inputs[k]);
    const std::vector<double> got = elements(gradients[k]);
    for (std::size_t e = 0; e < at.size(); ++e) {
      double side[2];
      for (const int s : {0, 1}) {
        std::vector<double> moved = at;
        moved[e] += s == 0 ? -1e-5 : 1e-5;
        std::vector<Tensor> in = inputs;
        in[k] = Tensor::from(moved, inputs[k].shape());
        side[s] = scalar_of(in).item();
      }
      CHECK(got[e] == doctest::Approx((side[1] - side[0]) / 2e-5).epsilon(1e-6).scale(1e-3));
    }
  }
  if (!again) return;
  check_gradients(
      [&](const std::vector<Tensor>& in) {
        Tensor total = zeros({}, DType::Float64);
        for (const Tensor& g : grad(scalar_of(in), in)) total = total + sum(square(g));
        return total + sum(in[0]) * 0;
      },
      inputs, false);
}

}  // namespace

TEST_CASE("sparse: conversions of all matrices") {
  for (const Matrix& m : matrices()) {
    CAPTURE(m.what);
    const Tensor values = filled({m.count()}, 1.7), expected = dense_of(m, values);
    for (const bool csr : {false, true}) {
      const SparseTensor s = sparse_of(m, values, csr);
      CHECK(s.layout() == (csr ? SparseLayout::Csr : SparseLayout::Coo));
      CHECK(s.nnz() == m.count());
      CHECK(is_close(s.to_dense(), expected));
      CHECK(is_close(s.to_coo().to_csr().to_dense(), expected));
      CHECK(is_close(s.transpose().to_dense(), expected.transpose()));
      CHECK(s.transpose().layout() == s.layout());
      const SparseTensor once = s.coalesce();
      CHECK(once.is_coalesced());
      CHECK(once.layout() == s.layout());
      CHECK(is_close(once.to_dense(), expected));
      CHECK(is_close(once.coalesce().values(), once.values()));
      CHECK(is_close(SparseTensor::coo(s.indices(), s.values(), s.shape()).to_dense(), expected));
    }
    const SparseTensor rows = sparse_of(m, values, true);
    CHECK(rows.row_starts().shape() == Shape{m.shape[0] + 1});
    const SparseTensor again =
        SparseTensor::csr(rows.row_starts(), rows.index(1), rows.values(), m.shape);
    CHECK(is_close(again.to_dense(), expected));
    const SparseTensor found = SparseTensor::from_dense(expected);
    CHECK(found.is_coalesced());
    const std::vector<double> all = elements(expected);
    CHECK(found.nnz() == std::count_if(all.begin(), all.end(), [](double e) { return e != 0; }));
    CHECK(is_close(found.to_dense(), expected));
  }
}

TEST_CASE("sparse: coalesce sorts, and adds elements at one position") {
  const SparseTensor s = SparseTensor::coo(whole({2, 0, 2, 0, 1, 3, 1, 0}, {2, 4}),
                                           Tensor::from<double>({1, 2, 3, 4}, {4}), {3, 4});
  const SparseTensor once = s.coalesce();
  CHECK(once.indices().to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 0, 2, 0, 3, 1});
  CHECK(elements(once.values()) == std::vector<double>{4, 2, 4});
  CHECK(once.to_csr().row_starts().to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{0, 2, 2, 3});
  CHECK(SparseTensor::from_dense(Tensor::from<float>({0, 2, 0, 3}, {2, 2})).nnz() == 2);
}

TEST_CASE("sparse: products with dense matrices, vectors and batches") {
  for (const Matrix& m : matrices()) {
    CAPTURE(m.what);
    const std::int64_t rows = m.shape[0], columns = m.shape[1];
    const Tensor values = filled({m.count()}, 1.7), d = dense_of(m, values);
    for (const bool csr : {false, true}) {
      const SparseTensor s = sparse_of(m, values, csr);
      for (const Shape& batch : {Shape{}, Shape{3}, Shape{2, 1}})
        for (const std::int64_t n : {0, 1, 3, 70}) {
          Shape right = batch, left = batch;
          right.push_back(columns), right.push_back(n);
          left.push_back(n), left.push_back(rows);
          const Tensor b = filled(right, 0.9), a = filled(left, 0.7);
          CHECK(is_close(matmul(s, b), matmul(d, b)));
          CHECK(is_close(s.matmul(b), matmul(d, b)));
          CHECK(is_close(matmul(a, s), matmul(a, d)));
        }
      const Tensor x = filled({columns}, 0.4), y = filled({rows}, 0.8);
      CHECK(is_close(matmul(s, x), matmul(d, x)));
      CHECK(is_close(matmul(y, s), matmul(y, d)));
      const Tensor view = filled({4, columns}, 0.4).transpose();
      CHECK(is_close(matmul(s, view), matmul(d, view)));
    }
  }
}

TEST_CASE("sparse: sums, element-wise products and additions") {
  for (const Matrix& m : matrices()) {
    CAPTURE(m.what);
    const Tensor values = filled({m.count()}, 1.7), d = dense_of(m, values);
    const SparseTensor s = sparse_of(m, values), c = sparse_of(m, values, true);
    for (const Ints& axes : {Ints{}, Ints{0}, Ints{1}, Ints{-1}, Ints{0, 1}})
      for (const bool keepdim : {false, true}) {
        const Tensor expected = sum(d, axes, keepdim);
        CHECK(is_close(sum(s, axes, keepdim), expected));
        CHECK(is_close(sum(c, axes, keepdim), expected));
      }
    CHECK(is_close((s + c).to_dense(), d + d));
    CHECK((c + s).layout() == SparseLayout::Csr);
    CHECK(is_close((s * 3).to_dense(), d * 3));
    for (const Shape& shape : {m.shape, Shape{m.shape[1]}, Shape{m.shape[0], 1}, Shape{}}) {
      const Tensor factor = filled(shape, 1.1);
      CHECK(is_close((s * factor).to_dense(), d * factor));
      CHECK(is_close((c * factor).to_dense(), d * factor));
    }
  }
}

TEST_CASE("sparse: softmax of each row counts the stored elements") {
  for (const Matrix& m : matrices()) {
    CAPTURE(m.what);
    const Tensor values = filled({m.count()}, 1.7) * 40 + 500;
    const SparseTensor s = sparse_of(m, values).coalesce();
    const Tensor stored = s.with_values(ones_like(s.values())).to_dense();
    const Tensor scores = where(gt(stored, 0), s.to_dense(), -HUGE_VAL);
    const Tensor expected =
        m.shape.numel() == 0 ? stored : where(gt(stored, 0), softmax(scores, -1), 0);
    for (const bool csr : {false, true}) {
      const SparseTensor given = sparse_of(m, values, csr);
      CHECK(is_close(softmax(given).to_dense(), expected));
      CHECK(softmax(given).layout() == given.layout());
      CHECK(is_close(exp(log_softmax(given).values()), softmax(given).values()));
    }
  }
}

TEST_CASE("sparse: sampled_matmul is the product at the positions of the pattern") {
  for (const Matrix& m : matrices()) {
    CAPTURE(m.what);
    for (const std::int64_t k : {0, 1, 6}) {
      const Tensor a = filled({m.shape[0], k}, 0.6), b = filled({k, m.shape[1]}, 0.5);
      const Tensor ones_at = dense_of(m, ones({m.count()}, DType::Float64));
      const SparseTensor s = sparse_of(m, filled({m.count()}, 1));
      CHECK(is_close(sampled_matmul(s, a, b).to_dense(), matmul(a, b) * ones_at));
    }
  }
}

TEST_CASE("sparse: any number of axes") {
  const Tensor indices = whole({1, 0, 1, 1, 2, 0, 2, 1, 3, 3, 3, 0}, {3, 4});
  const Tensor values = filled({4}, 0.9);
  const SparseTensor s = SparseTensor::coo(indices, values, {2, 3, 4});
  const Tensor d = s.to_dense();
  CHECK(elements(d)[1 * 12 + 2 * 4 + 3] ==
        doctest::Approx(elements(values)[0] + elements(values)[2]));
  CHECK(is_close(sum(s, {1}), sum(d, {1})));
  CHECK(is_close(sum(s, {0, 2}, true), sum(d, {0, 2}, true)));
  CHECK(is_close((s * filled({3, 1}, 2)).to_dense(), d * filled({3, 1}, 2)));
  CHECK(s.coalesce().nnz() == 3);
  CHECK(is_close(SparseTensor::from_dense(d).to_dense(), d));
  const SparseTensor scalar_like =
      SparseTensor::coo(zeros({0, 2}, DType::Int64), Tensor::from<double>({2, 3}, {2}), {});
  CHECK(scalar_like.to_dense().item() == 5);
  CHECK(scalar_like.coalesce().nnz() == 1);
}

TEST_CASE("sparse: products of sparse tensors") {
  // The columns of the first are the rows of the second: unsorted, with duplicates, or empty.
  const Matrix left = matrices()[1];
  const std::vector<Matrix> rights{
      {"unsorted", whole({4, 0, 4, 2, 0, 1, 2, 0, 1, 0}, {2, 5}), {5, 3}},
      {"no elements", zeros({2, 0}, DType::Int64), {5, 3}},
      {"no columns", zeros({2, 0}, DType::Int64), {5, 0}}};
  for (const Matrix& right : rights)
    for (const bool csr : {false, true}) {
      CAPTURE(right.what);
      const Tensor v = filled({left.count()}, 1.7), w = filled({right.count()}, 0.9);
      const SparseTensor product = matmul(sparse_of(left, v, csr), sparse_of(right, w, !csr));
      CHECK(product.layout() == (csr ? SparseLayout::Csr : SparseLayout::Coo));
      CHECK(product.is_coalesced());
      CHECK(is_close(product.to_dense(), matmul(dense_of(left, v), dense_of(right, w))));
      CHECK(is_close(product.transpose().to_dense(), product.to_dense().transpose()));
    }
  for (const Matrix& m : matrices()) {
    CAPTURE(m.what);
    const Tensor v = filled({m.count()}, 1.7);
    const SparseTensor s = sparse_of(m, v), gram = matmul(s, s.transpose());
    const Tensor d = dense_of(m, v);
    CHECK(is_close(gram.to_dense(), matmul(d, d.transpose())));
    // Element by element: with itself, with other positions, and with none.
    CHECK(is_close((s * s).to_dense(), square(d)));
    CHECK(is_close((s - s).to_dense(), d * 0.0));
    const Matrix half{"", narrow(m.indices, 1, 0, m.count() / 2), m.shape};
    const Tensor w = filled({half.count()}, 0.4);
    for (const bool csr : {false, true}) {
      const SparseTensor both = sparse_of(m, v, csr) * sparse_of(half, w);
      CHECK(both.layout() == (csr ? SparseLayout::Csr : SparseLayout::Coo));
      CHECK(both.is_coalesced());
      CHECK(is_close(both.to_dense(), d * dense_of(half, w)));
      CHECK(is_close((sparse_of(half, w, csr) * s).to_dense(), d * dense_of(half, w)));
    }
  }
  // Gradients of both factors, and their gradients.
  const Matrix right = rights[0];
  const Tensor v = filled({left.count()}, 1.7), w = filled({right.count()}, 0.9);
  check_gradients(
      [&](const auto& in) {
        return matmul(sparse_of(left, in[0], true), sparse_of(right, in[1])).to_dense();
      },
      {v, w});
  check_gradients(
      [&](const auto& in) {
        return (sparse_of(left, in[0]) * sparse_of(left, in[1], true)).to_dense();
      },
      {v, filled({left.count()}, 0.6)});
  check_gradients(
      [&](const auto& in) {
        return square((sparse_of(left, in[0]) - sparse_of(left, in[1])).to_dense());
      },
      {v, filled({left.count()}, 0.6)});
  // Data types.
  const Tensor expected = matmul(dense_of(left, v), dense_of(right, w));
  const struct {
    DType dtype;
    double tolerance;
  } rows[] = {{DType::Float32, 1e-6}, {DType::BFloat16, 2e-2}, {DType::Float16, 2e-3}};
  for (const auto& [dtype, tolerance] : rows) {
    const SparseTensor product =
        matmul(sparse_of(left, cast(v, dtype)), sparse_of(right, cast(w, dtype)));
    CHECK(product.dtype() == dtype);
    CHECK(is_close(product.to_dense(), expected, tolerance));
  }
  const SparseTensor mixed = matmul(sparse_of(left, cast(v, DType::Float32)), sparse_of(right, w));
  CHECK(mixed.dtype() == DType::Float64);
  // What does not fit.
  const SparseTensor s = sparse_of(left, v);
  CHECK_THROWS_AS(matmul(s, s), ShapeError);
  CHECK_THROWS_AS(s * sparse_of(right, w), ShapeError);
  CHECK_THROWS_AS(s - sparse_of(right, w), ShapeError);
  CHECK_THROWS_AS(matmul(s, SparseTensor::coo(whole({0}, {1, 1}), ones({1}), {5})), ShapeError);
  for (const std::int64_t bad : {std::int64_t{5}, std::int64_t{-1}}) {
    const SparseTensor row = SparseTensor::coo(whole({bad, 0}, {2, 1}), ones({1}), {5, 7});
    CHECK_THROWS_AS(matmul(s, row), ValueError);
    CHECK_THROWS_AS(matmul(row.transpose(), s.transpose()), ValueError);
    CHECK_THROWS_AS(row * row, ValueError);
    CHECK_THROWS_AS(row.to_csr().row_starts().compute(), ValueError);
  }
}

TEST_CASE("sparse: gradients of every operation, and their gradients") {
  const Matrix m = matrices()[1];
  const Tensor v = filled({m.count()}, 1.7), b = filled({5, 2}, 0.9), a = filled({2, 7}, 0.8);
  const auto s = [&](const std::vector<Tensor>& in, bool csr = false) {
    return sparse_of(m, in[0], csr);
  };
  for (const bool csr : {false, true}) {
    check_gradients([&](const auto& in) { return matmul(s(in, csr), in[1]); }, {v, b});
    check_gradients([&](const auto& in) { return matmul(in[1], s(in, csr)); }, {v, a});
    check_gradients([&](const auto& in) { return square(s(in, csr).to_dense()); }, {v});
    check_gradients([&](const auto& in) { return square(s(in, csr).coalesce().values()); }, {v});
    check_gradients([&](const auto& in) { return softmax(s(in, csr)).values(); }, {v});
    check_gradients([&](const auto& in) { return log_softmax(s(in, csr)).to_dense(); }, {v});
  }
  check_gradients([&](const auto& in) { return matmul(s(in), in[1]); }, {v, filled({5}, 0.9)});
  check_gradients([&](const auto& in) { return sum(square(s(in).to_dense()), {1}); }, {v});
  check_gradients([&](const auto& in) { return square(sum(s(in), {0})); }, {v});
  check_gradients([&](const auto& in) { return (s(in) * in[1]).to_dense(); },
                  {v, filled({7, 1}, 0.7)});
  check_gradients([&](const auto& in) { return square((s(in) + s({in[1]})).to_dense()); },
                  {v, filled({m.count()}, 0.3)});
  check_gradients([&](const auto& in) { return sampled_matmul(s({v}), in[0], in[1]).values(); },
                  {filled({7, 3}, 0.6), filled({3, 5}, 0.5)});
}

TEST_CASE("sparse: other data types") {
  const Matrix m = matrices()[1];
  const Tensor v = filled({m.count()}, 1.7), b = filled({5, 3}, 0.9);
  const Tensor expected = matmul(dense_of(m, v), b);
  const struct {
    DType dtype;
    double tolerance;
  } rows[] = {{DType::Float32, 1e-6}, {DType::BFloat16, 2e-2}, {DType::Float16, 2e-3}};
  for (const auto& [dtype, tolerance] : rows) {
    CAPTURE(dtype);
    const SparseTensor s = sparse_of(m, cast(v, dtype));
    const Tensor y = matmul(s, cast(b, dtype));
    CHECK(y.dtype() == dtype);
    CHECK(is_close(y, expected, tolerance));
    CHECK(softmax(s).dtype() == dtype);
    CHECK(s.to_dense().dtype() == dtype);
  }
  const SparseTensor counts =
      SparseTensor::coo(cast(m.indices, DType::Int32), whole({1, 2, 3, 4, 5, 6}, {6}), m.shape);
  CHECK(counts.indices().dtype() == DType::Int64);
  CHECK(sum(counts).item() == 21);
  CHECK_THROWS_AS(softmax(counts), DTypeError);
}

TEST_CASE("sparse: inside a compiled function, with indices as inputs") {
  const Matrix m = matrices()[1];
  const auto f = compile([&](const std::vector<Tensor>& in) {
    const SparseTensor s = SparseTensor::coo(in[0], in[1], m.shape);
    return std::vector<Tensor>{matmul(s.to_csr(), in[2]), sum(s.transpose(), {0})};
  });
  for (const double by : {1.7, 0.6}) {
    const Tensor v = filled({m.count()}, by), b = filled({5, 3}, 0.9), d = dense_of(m, v);
    const std::vector<Tensor> out = f({m.indices, v, b});
    CHECK(is_close(out[0], matmul(d, b)));
    CHECK(is_close(out[1], sum(d, {1})));
  }
}

TEST_CASE("sparse: a product takes memory for its elements, not for the matrix") {
  const std::int64_t n = 20000;
  const SparseTensor s = SparseTensor::coo(whole({5, n - 1, n - 1, 7}, {2, 2}), ones({2}), {n, n});
  const Plan plan = tenon::plan({sum(matmul(s, ones({n, 2}).compute()))});
  CHECK(plan.arena_bytes() < 1000000);
}

TEST_CASE("sparse: what does not fit is refused") {
  const Tensor indices = whole({0, 1, 1, 0}, {2, 2}), values = ones({2});
  const SparseTensor s = SparseTensor::coo(indices, values, {2, 3});
  CHECK_THROWS_AS(SparseTensor::coo(indices, values, {2}), ShapeError);
  CHECK_THROWS_AS(SparseTensor::coo(indices, ones({3}), {2, 3}), ShapeError);
  CHECK_THROWS_AS(SparseTensor::coo(indices, ones({2}, DType::Bool), {2, 3}), DTypeError);
  CHECK_THROWS_AS(SparseTensor::coo(cast(indices, DType::Float32), values, {2, 3}), DTypeError);
  CHECK_THROWS_AS(SparseTensor::coo(values, values, {2, 3}), DTypeError);
  CHECK_THROWS_AS(SparseTensor::coo({}, values, {2, 3}), ValueError);
  CHECK_THROWS_AS(matmul(s, ones({2, 3})), ShapeError);
  CHECK_THROWS_AS(matmul(s, scalar(1)), ShapeError);
  CHECK_THROWS_AS(matmul(ones({3, 3}), s), ShapeError);
  CHECK_THROWS_AS(matmul(SparseTensor::coo(whole({0}, {1, 1}), ones({1}), {2}), ones({2})),
                  ShapeError);
  CHECK_THROWS_AS(s + SparseTensor::coo(indices, values, {3, 3}), ShapeError);
  CHECK_THROWS_AS(s * ones({3, 3}), ShapeError);
  CHECK_THROWS_AS(s * ones({1, 2, 3}), ShapeError);
  CHECK_THROWS_AS(s.with_values(ones({3})), ShapeError);
  CHECK_THROWS_AS(s.row_starts(), ValueError);
  CHECK_THROWS_AS(s.index(2), Error);
  CHECK_THROWS_AS(sampled_matmul(s, ones({2, 4}), ones({5, 3})), ShapeError);
  CHECK_THROWS_AS(sum(s, {2}), Error);
  const auto csr = [&](std::vector<std::int64_t> starts, const Tensor& columns) {
    const auto n = static_cast<std::int64_t>(starts.size());
    return SparseTensor::csr(whole(std::move(starts), {n}), columns, values, {2, 3});
  };
  const Tensor columns = whole({0, 2}, {2});
  CHECK(sum(csr({0, 1, 2}, columns)).item() == 2);
  CHECK_THROWS_AS(csr({0, 2}, columns), ShapeError);
  CHECK_THROWS_AS(csr({0, 1, 1}, columns), ValueError);
  CHECK_THROWS_AS(csr({1, 1, 2}, columns), ValueError);
  CHECK_THROWS_AS(csr({0, 3, 2}, columns), ValueError);
  CHECK_THROWS_AS(csr({0, 1, 2}, whole({0, 1, 1}, {3})), ShapeError);
  // An index outside its axis is never read as another element.
  for (const std::int64_t bad : {std::int64_t{3}, std::int64_t{-1}}) {
    const SparseTensor out = SparseTensor::coo(whole({0, 1, 1, bad}, {2, 2}), values, {2, 3});
    CHECK_THROWS_AS(out.to_dense().compute(), ValueError);
    CHECK_THROWS_AS(matmul(out, ones({3, 2})).compute(), ValueError);
    CHECK_THROWS_AS(matmul(ones({1, 2}), out).compute(), ValueError);
    CHECK_THROWS_AS(sum(out, {1}).compute(), ValueError);
    CHECK_THROWS_AS((out * ones({3})).values().compute(), ValueError);
  }
}

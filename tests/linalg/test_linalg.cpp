// Linear algebra: what its factors and solutions must satisfy, first and second derivatives against
// finite differences, batches, views, empty matrices, and refusals.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <tenon/tenon.h>

#include "grad/numeric.h"

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;

Tensor draw(const Shape& shape, std::uint64_t seed, DType dtype = DType::Float64) {
  return randn(shape, dtype, Generator(seed)).compute();
}

// Symmetric, with eigenvalues of at least 1.
Tensor definite(const Shape& shape, std::uint64_t seed, DType dtype = DType::Float64) {
  const Tensor x = draw(shape, seed, dtype);
  return (matmul(x, transpose(x)) + eye(shape[shape.rank() - 1], {}, dtype)).compute();
}

double distance(const Tensor& found, const Tensor& expected) {
  REQUIRE(found.shape() == expected.shape());
  REQUIRE(found.dtype() == expected.dtype());
  if (found.numel() == 0) return 0;
  const double norm = std::sqrt(square(cast(expected, DType::Float64)).sum().item());
  const double error = std::sqrt(square(cast(found - expected, DType::Float64)).sum().item());
  return error / (norm > 0 ? norm : 1);
}

double tolerance(DType dtype) { return dtype == DType::Float64 ? 1e-12 : 1e-4; }

// A number that depends on all elements of the results.
Tensor number_of(const Tensors& results) {
  Tensor out = scalar(0.0, DType::Float64);
  std::uint64_t seed = 90;
  for (const Tensor& result : results)
    if (result.dtype() == DType::Float64)
      out = out + (result * draw(result.shape(), ++seed)).sum() + square(result).sum() * 0.25;
  return out;
}

double error_of(const Tensor& found, const std::vector<double>& expected) {
  return distance(found, Tensor::from(expected, found.shape()));
}

void check_derivatives(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs) {
  const auto value = [&](const Tensors& in) { return number_of(f(in)); };
  const auto slope = [&](const Tensors& in) {
    Tensors copies;
    for (const Tensor& x : in) copies.push_back(x * 1.0);
    const Tensors g = grad(value(copies), copies);
    return number_of(g);
  };
  Tensors variables;
  for (const Tensor& x : inputs) variables.push_back(variable(x));
  const auto first = numeric_gradient(value, inputs), second = numeric_gradient(slope, inputs);
  const Tensors g = grad(value(variables), variables), h = grad(slope(variables), variables);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    CAPTURE(k);
    CHECK(error_of(g[k], first[k]) < 1e-6);
    CHECK(error_of(h[k], second[k]) < 1e-5);
  }
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("linalg: factors multiply to the matrix, in both dtypes, for batches and views") {
  for (const DType dtype : {DType::Float32, DType::Float64})
    for (const Shape& shape :
         {Shape{4, 4}, Shape{7, 3}, Shape{3, 7}, Shape{2, 3, 5, 4}, Shape{1, 1}, Shape{2, 33, 33},
          Shape{0, 3, 3}, Shape{3, 0}, Shape{0, 3}, Shape{0, 0}}) {
      CAPTURE(std::string(name(dtype)));
      CAPTURE(shape.str());
      // A transposed matrix is a view.
      const Tensor a = transpose(draw(transpose(zeros(shape)).shape(), 3, dtype));
      const std::int64_t rows = a.size(-2), columns = a.size(-1), few = std::min(rows, columns);
      const double limit = tolerance(dtype);
      const linalg::Qr q = linalg::qr(a), whole = linalg::qr(a, linalg::QrMode::Complete);
      CHECK(distance(matmul(q.q, q.r), a) < limit);
      CHECK(distance(matmul(whole.q, whole.r), a) < limit);
      CHECK(whole.q.size(-1) == rows);
      CHECK(distance(matmul(transpose(q.q), q.q),
                     broadcast_to(eye(few, {}, dtype), matmul(transpose(q.q), q.q).shape())) <
            limit);
      CHECK(distance(triu(q.r), q.r) == 0);
      for (const bool full : {false, true}) {
        const linalg::Svd s = linalg::svd(a, full);
        CHECK(s.u.size(-1) == (full ? rows : few));
        CHECK(s.vh.size(-2) == (full ? columns : few));
        const Tensor product =
            matmul(slice(s.u, -1, 0, few) * unsqueeze(s.s, -2), slice(s.vh, -2, 0, few));
        CHECK(distance(product, a) < limit);
        CHECK(distance(matmul(transpose(s.u), s.u),
                       broadcast_to(eye(s.u.size(-1), {}, dtype),
                                    matmul(transpose(s.u), s.u).shape())) < limit);
      }
      CHECK(distance(linalg::svdvals(a), linalg::svd(a).s) < limit);
      const linalg::Lu f = linalg::lu(a);
      CHECK(distance(matmul(f.p, matmul(f.l, f.u)), a) < limit);
      CHECK(distance(linalg::householder_product(linalg::geqrf(slice(a, -1, 0, few)).packed,
                                                 linalg::geqrf(slice(a, -1, 0, few)).tau),
                     linalg::qr(slice(a, -1, 0, few)).q) < limit);
      const linalg::QrFactor packed = linalg::geqrf(a);
      CHECK(distance(linalg::ormqr(packed, a, true, true), matmul(transpose(whole.q), a)) < limit);
      CHECK(distance(matmul(matmul(a, linalg::pinv(a)), a), a) < 10 * limit);
      CHECK(distance(linalg::matrix_rank(a),
                     full(linalg::matrix_rank(a).shape(), few, DType::Int64)) == 0);
      if (few == 0) continue;
      if (rows >= columns) {
        const linalg::Polar polar = linalg::polar(a);
        CHECK(distance(matmul(polar.u, polar.p), a) < limit);
      }
      const linalg::Svd most = linalg::svd_lowrank(a, few);
      CHECK(distance(matmul(most.u * unsqueeze(most.s, -2), most.vh), a) < limit);
    }
}

TEST_CASE("linalg: square matrices: solutions, inverses, determinants, eigenvalues") {
  for (const DType dtype : {DType::Float32, DType::Float64})
    for (const Shape& shape : {Shape{4, 4}, Shape{1, 1}, Shape{2, 3, 5, 5}, Shape{40, 40},
                               Shape{0, 2, 2}, Shape{0, 0}}) {
      CAPTURE(std::string(name(dtype)));
      CAPTURE(shape.str());
      const double limit = 100 * tolerance(dtype);
      const Tensor a = draw(shape, 5, dtype), s = definite(shape, 6, dtype);
      const std::int64_t n = shape[shape.rank() - 1];
      Ints sides(shape.begin(), shape.end());
      sides.back() = 3;
      const Tensor b = draw(Shape(sides.data(), shape.rank()), 7, dtype);
      CHECK(distance(matmul(a, linalg::solve(a, b)), b) < limit);
      CHECK(distance(matmul(linalg::solve(a, transpose(b), false), a), transpose(b)) < limit);
      CHECK(distance(matmul(a, linalg::inv(a)), broadcast_to(eye(n, {}, dtype), shape)) < limit);
      const linalg::LuFactor factor = linalg::lu_factor(a);
      for (const bool transposed : {false, true}) {
        const Tensor used = transposed ? transpose(a) : a;
        CHECK(distance(matmul(used, linalg::lu_solve(factor, b, true, transposed)), b) < limit);
        CHECK(distance(matmul(linalg::lu_solve(factor, transpose(b), false, transposed), used),
                       transpose(b)) < limit);
      }
      for (const bool upper : {false, true}) {
        const Tensor c = linalg::cholesky(s, upper);
        CHECK(distance(upper ? matmul(transpose(c), c) : matmul(c, transpose(c)), s) < limit);
        CHECK(distance(matmul(s, linalg::cholesky_solve(b, c, upper)), b) < limit);
        CHECK(distance(linalg::cholesky_inverse(c, upper), linalg::inv(s)) < limit);
        const linalg::Eigh e = linalg::eigh(s, upper);
        CHECK(distance(matmul(e.vectors * unsqueeze(e.values, -2), transpose(e.vectors)), s) <
              limit);
        CHECK(distance(linalg::eigvalsh(s, upper), e.values) < limit);
      }
      const Tensor root = linalg::matrix_sqrth(s);
      CHECK(distance(matmul(root, root), s) < limit);
      const linalg::SignAndLog parts = linalg::slogdet(a);
      CHECK(distance(parts.sign * exp(parts.logabsdet), linalg::det(a)) < limit);
      CHECK(distance(linalg::logdet(s), linalg::slogdet(s).logabsdet) == 0);
      // A v = (real + i imaginary) v
      const linalg::Eig e = linalg::eig(a);
      const Tensor real = unsqueeze(e.real, -2), imaginary = unsqueeze(e.imaginary, -2);
      CHECK(distance(matmul(a, e.vectors_real),
                     e.vectors_real * real - e.vectors_imaginary * imaginary) < limit);
      CHECK(distance(matmul(a, e.vectors_imaginary),
                     e.vectors_real * imaginary + e.vectors_imaginary * real) < limit);
      const Tensor small = s * (1.0 / static_cast<double>(std::max<std::int64_t>(n, 1)));
      const linalg::Eigh of_small = linalg::eigh(small);
      CHECK(distance(linalg::matrix_exp(small),
                     matmul(of_small.vectors * exp(unsqueeze(of_small.values, -2)),
                            transpose(of_small.vectors))) < limit);
      // A norm that needs halving: exp(a) exp(-a) = 1.
      const Tensor shift = (a - transpose(a)) * 5.0;
      CHECK(distance(matmul(linalg::matrix_exp(shift), linalg::matrix_exp(-shift)),
                     broadcast_to(eye(n, {}, dtype), shape)) < limit);
    }
}

TEST_CASE("linalg: first and second derivatives of solutions and triangular factors") {
  const Tensor a = draw({2, 4, 4}, 11), b = draw({2, 4, 3}, 12), s = definite({2, 3, 3}, 13);
  using namespace linalg;
  check_derivatives([](const Tensors& x) { return Tensors{solve(x[0], x[1])}; }, {a, b});
  check_derivatives([](const Tensors& x) { return Tensors{solve(x[0], x[1], false)}; },
                    {a, draw({3, 4}, 14)});
  check_derivatives([](const Tensors& x) { return Tensors{inv(x[0])}; }, {a});
  for (const bool upper : {false, true})
    for (const bool left : {false, true})
      for (const bool unit : {false, true})
        check_derivatives(
            [&](const Tensors& x) {
              return Tensors{solve_triangular(x[0] + eye(4, {}, DType::Float64) * 2.0, x[1],
                                              {upper, left, unit})};
            },
            {a, left ? b : draw({2, 3, 4}, 15)});
  for (const bool upper : {false, true})
    check_derivatives(
        [&](const Tensors& x) {
          const Tensor sum = x[0] + transpose(x[0]);
          const Tensor c = cholesky(sum, upper);
          return Tensors{c, cholesky_solve(x[1], c, upper)};
        },
        {s, draw({2, 3, 2}, 16)});
  for (const Shape& shape : {Shape{4, 4}, Shape{5, 3}, Shape{3, 5}})
    check_derivatives(
        [](const Tensors& x) {
          const Lu f = lu(x[0]);
          return Tensors{f.l, f.u};
        },
        {draw(shape, 17)});
  check_derivatives(
      [](const Tensors& x) { return Tensors{lu_solve(lu_factor(x[0]), x[1], true, true)}; },
      {a, b});
  check_derivatives([](const Tensors& x) { return Tensors{det(x[0])}; }, {a});
  check_derivatives([](const Tensors& x) { return Tensors{slogdet(x[0]).logabsdet}; }, {a});
  check_derivatives([](const Tensors& x) { return Tensors{logdet(x[0])}; }, {s});
  check_derivatives([](const Tensors& x) { return Tensors{tensorinv(x[0], 1)}; },
                    {draw({6, 2, 3}, 18)});
  check_derivatives([](const Tensors& x) { return Tensors{tensorsolve(x[0], x[1])}; },
                    {draw({2, 3, 6}, 19), draw({2, 3}, 20)});
}

TEST_CASE("linalg: first and second derivatives of orthogonal factors") {
  using namespace linalg;
  for (const Shape& shape : {Shape{4, 4}, Shape{5, 3}, Shape{3, 5}, Shape{2, 3, 2}}) {
    CAPTURE(shape.str());
    const Tensor a = draw(shape, 21);
    check_derivatives(
        [](const Tensors& x) {
          const Qr f = qr(x[0]);
          return Tensors{f.q, f.r};
        },
        {a});
    // Signs of the vectors are free, so only what does not depend on them is compared.
    check_derivatives(
        [](const Tensors& x) {
          const Svd f = svd(x[0], false);
          return Tensors{f.s, square(f.u), matmul(f.u, f.vh), square(f.vh)};
        },
        {a});
    check_derivatives([](const Tensors& x) { return Tensors{pinv(x[0])}; }, {a});
    if (a.size(-2) >= a.size(-1))
      check_derivatives(
          [](const Tensors& x) {
            const Polar f = polar(x[0]);
            return Tensors{f.u, f.p};
          },
          {a});
  }
  const Tensor a = draw({4, 4}, 22), s = definite({2, 4, 4}, 23);
  check_derivatives(
      [](const Tensors& x) {
        const Eigh f = eigh(x[0] + transpose(x[0]));
        return Tensors{f.values, square(f.vectors)};
      },
      {a});
  check_derivatives([](const Tensors& x) { return Tensors{matrix_exp(x[0])}; }, {a});
  check_derivatives([](const Tensors& x) { return Tensors{matrix_sqrth(x[0] + transpose(x[0]))}; },
                    {s});
  check_derivatives([](const Tensors& x) { return Tensors{cond(x[0])}; }, {a});
  for (const Shape& shape : {Shape{5, 3}, Shape{3, 5}})
    check_derivatives(
        [](const Tensors& x) {
          const LeastSquares f = lstsq(x[0], x[1]);
          return Tensors{f.solution, f.residuals};
        },
        {draw(shape, 24), draw({shape[0], 2}, 25)});
  check_derivatives([](const Tensors& x) { return Tensors{householder_product(x[0], x[1])}; },
                    {draw({5, 3}, 26), draw({2}, 27)});
}

TEST_CASE("linalg: powers, norms and condition numbers") {
  using linalg::MatrixNorm;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::Float32, DType::Float64})
    for (const Shape& shape :
         {Shape{3, 3}, Shape{1, 1}, Shape{2, 3, 5, 5}, Shape{0, 2, 2}, Shape{0, 0}}) {
      CAPTURE(std::string(name(dtype)));
      CAPTURE(shape.str());
      const Tensor a = draw(shape, 41, dtype);
      const std::int64_t n = shape[shape.rank() - 1];
      const double limit = 1000 * tolerance(dtype);
      const Tensor one = broadcast_to(eye(n, {}, dtype), shape);
      CHECK(distance(linalg::matrix_power(a, 0), one) == 0);
      CHECK(distance(linalg::matrix_power(a, 5), matmul(matmul(matmul(matmul(a, a), a), a), a)) <
            limit);
      CHECK(distance(linalg::matrix_power(a, -3), linalg::inv(matmul(matmul(a, a), a))) < limit);
      const Tensor inverse = linalg::inv(a);
      for (const double p : {1.0, -1.0, infinity, -infinity}) {
        if (n == 0) {
          CHECK(equal(linalg::cond(a, p), zeros(linalg::cond(a, p).shape(), dtype)));
          continue;
        }
        CHECK(distance(linalg::cond(a, p),
                       linalg::matrix_norm(a, p) * linalg::matrix_norm(inverse, p)) < limit);
      }
    }
  for (const Shape& shape : {Shape{4, 3}, Shape{2, 3, 5}, Shape{1, 4}}) {
    const Tensor a = draw(shape, 42), s = linalg::svdvals(a);
    CHECK(distance(linalg::matrix_norm(a, MatrixNorm::Nuclear), sum(s, {-1})) < 1e-14);
    CHECK(distance(linalg::matrix_norm(a), sqrt(sum(square(a), {-2, -1}))) < 1e-14);
    CHECK(distance(linalg::matrix_norm(a, 2), amax(s, {-1})) < 1e-14);
    CHECK(distance(linalg::matrix_norm(a, -2), amin(s, {-1})) < 1e-14);
    CHECK(distance(linalg::matrix_norm(a, 1), amax(sum(abs(a), {-2}), {-1})) < 1e-14);
    CHECK(distance(linalg::matrix_norm(a, -infinity), amin(sum(abs(a), {-1}), {-1})) < 1e-14);
  }
  // Any two axes, in any order, kept or not: rows are axis 2, columns axis 0.
  const Tensor a = draw({3, 2, 4}, 43), permuted = permute(a, {1, 2, 0});
  for (const double p : {1.0, 2.0, infinity}) {
    CHECK(distance(linalg::matrix_norm(a, p, {2, 0}), linalg::matrix_norm(permuted, p)) < 1e-14);
    CHECK(linalg::matrix_norm(a, p, {2, 0}, true).shape() == Shape{1, 2, 1});
  }
  CHECK(linalg::matrix_norm(a, MatrixNorm::Nuclear, {0, -1}, true).shape() == Shape{1, 2, 1});
  const Tensor none = zeros({2, 0, 3}, DType::Float64);
  for (const double p : {1.0, 2.0, infinity})
    CHECK(linalg::matrix_norm(none, p).to_vector<double>() == std::vector<double>{0, 0});
  CHECK(linalg::matrix_norm(none, MatrixNorm::Nuclear).to_vector<double>() ==
        std::vector<double>{0, 0});
  CHECK(linalg::cond(draw({5, 3}, 44), -2).item() <= 1);
  CHECK(linalg::cond(zeros({2, 2}, DType::Float64), 1).item() == infinity);
  CHECK(linalg::matrix_norm(ones({2, 3}, DType::Float16), 1).dtype() == DType::Float16);

  const Tensor square_one = draw({2, 3, 3}, 45), wide = draw({3, 5}, 46);
  for (const int n : {-2, 0, 3})
    check_derivatives(
        [n](const Tensors& x) { return Tensors{linalg::matrix_power(x[0], n) + x[0] * 0.5}; },
        {square_one});
  for (const double p : {1.0, -1.0, 2.0, -2.0, infinity, -infinity}) {
    CAPTURE(p);
    check_derivatives([p](const Tensors& x) { return Tensors{linalg::cond(x[0], p)}; },
                      {draw({3, 3}, 47)});
    check_derivatives([p](const Tensors& x) { return Tensors{linalg::matrix_norm(x[0], p)}; },
                      {wide});
  }
  for (const MatrixNorm kind : {MatrixNorm::Frobenius, MatrixNorm::Nuclear}) {
    check_derivatives([=](const Tensors& x) { return Tensors{linalg::cond(x[0], kind)}; },
                      {draw({3, 3}, 48)});
    check_derivatives([=](const Tensors& x) { return Tensors{linalg::matrix_norm(x[0], kind)}; },
                      {wide});
  }
  CHECK_THROWS_AS(linalg::matrix_power(zeros({2, 3}), 2), ShapeError);
  CHECK_THROWS_AS(linalg::matrix_power(zeros({2, 2}, DType::Int64), -1), DTypeError);
  CHECK_THROWS_AS(linalg::matrix_power(zeros({2, 2}), -1).compute(), ValueError);
  CHECK_THROWS_AS(linalg::matrix_norm(zeros({2, 2}), 3.0), ValueError);
  CHECK_THROWS_AS(linalg::matrix_norm(zeros({2, 2}), std::nan("")), ValueError);
  CHECK_THROWS_AS(linalg::matrix_norm(zeros({2, 2}), 1.0, {0, 0}), ValueError);
  CHECK_THROWS_AS(linalg::matrix_norm(zeros({2})), ShapeError);
  CHECK_THROWS_AS(linalg::matrix_norm(zeros({2, 2}, DType::BFloat16), 2.0), DTypeError);
  CHECK_THROWS_AS(linalg::matrix_norm(zeros({0, 2}), -2.0).compute(), Error);
  CHECK_THROWS_AS(linalg::cond(zeros({2, 3}), 1), ShapeError);
  CHECK_THROWS_AS(linalg::cond(zeros({2, 2}), 3), ValueError);
}

TEST_CASE("linalg: symmetric matrices that are not definite") {
  for (const DType dtype : {DType::Float32, DType::Float64})
    for (const Shape& shape : {Shape{5, 5}, Shape{1, 1}, Shape{2, 3, 4, 4}, Shape{40, 40},
                               Shape{0, 2, 2}, Shape{0, 0}}) {
      CAPTURE(std::string(name(dtype)));
      CAPTURE(shape.str());
      const Tensor x = draw(shape, 61, dtype), a = x + transpose(x);
      Ints sides(shape.begin(), shape.end());
      sides.back() = 3;
      const Tensor b = draw(Shape(sides.data(), shape.rank()), 62, dtype);
      // The upper triangle is not read.
      const linalg::LdlFactor f = linalg::ldl_factor(tril(a));
      CHECK(distance(matmul(a, linalg::ldl_solve(f, b)), b) < 100 * tolerance(dtype));
      CHECK(distance(triu(f.factors, 1), zeros_like(f.factors)) == 0);
      const linalg::CheckedLdl checked = linalg::ldl_factor_ex(a);
      CHECK(equal(checked.factor.factors, f.factors));
      CHECK(equal(checked.factor.pivots, f.pivots));
      CHECK(equal(checked.info, zeros_like(checked.info)));
    }
  // Zeros on the diagonal need a block of two rows.
  const Tensor swap = Tensor::from({0.0, 1.0, 1.0, 0.0}, {2, 2});
  const linalg::LdlFactor f = linalg::ldl_factor(swap);
  CHECK(f.pivots.to_vector<std::int32_t>() == std::vector<std::int32_t>{-2, -2});
  const Tensor b = draw({4, 2, 3}, 63);
  CHECK(distance(linalg::ldl_solve(f, b), matmul(swap, b)) == 0);  // broadcasts
  check_derivatives([&](const Tensors& x) { return Tensors{linalg::ldl_solve(f, x[0])}; }, {b});

  CHECK(linalg::ldl_factor_ex(zeros({2, 2})).info.item() == 1);
  CHECK(message_of([] {
          (void)linalg::ldl_factor(zeros({2, 2})).factors.compute();
        }) == "linalg::ldl_factor: the matrix is singular: D has a zero in row 1");
  const Tensor v = variable(swap);
  CHECK_THROWS_AS(grad(linalg::ldl_solve(linalg::ldl_factor(v), b).sum(), v), NotSupported);
  CHECK_THROWS_AS(grad(linalg::ldl_solve({v, f.pivots}, b).sum(), v), NotSupported);
  const auto pivots = [](std::int32_t first, std::int32_t second) {
    return Tensor::from<std::int32_t>({first, second}, {2});
  };
  for (const Tensor& wrong : {pivots(0, 1), pivots(1, 3), pivots(1, -1), pivots(-2, 2)})
    CHECK_THROWS_AS(linalg::ldl_solve({swap, wrong}, b).compute(), ValueError);
  for (const Tensor& wrong : {pivots(0, 1), pivots(1, 3), pivots(-1, 1)})
    CHECK_THROWS_AS(linalg::lu_unpack({swap, wrong}).p.compute(), ValueError);
  CHECK_THROWS_AS(linalg::ldl_solve({swap, cast(pivots(1, 2), DType::Int64)}, b), DTypeError);
  CHECK_THROWS_AS(linalg::ldl_solve({swap, zeros({3}, DType::Int32)}, b), ShapeError);
  CHECK_THROWS_AS(linalg::ldl_solve(f, zeros({3, 1}, DType::Float64)), ShapeError);
  CHECK_THROWS_AS(linalg::ldl_solve(f, zeros({2, 1})), DTypeError);
  CHECK_THROWS_AS(linalg::ldl_factor(zeros({2, 3})), ShapeError);
}

TEST_CASE("linalg: singular matrices, equal singular values, least rank") {
  using namespace linalg;
  // The gradient of a determinant exists for singular matrices: the cofactors.
  const Tensor a = Tensor::from({1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0}, {3, 3});
  const Tensor x = variable(a);
  CHECK(std::abs(det(x).item()) < 1e-12);
  CHECK(error_of(grad(det(x), x), {-3, 6, -3, 6, -12, 6, -3, 6, -3}) < 1e-12);
  const Tensor none = variable(zeros({3, 3}, DType::Float64));
  CHECK(grad(det(none), none).to_vector<double>() == std::vector<double>(9, 0));
  // Equal values: those have a gradient, and so have functions that do not turn the vectors.
  const Tensor one = variable(eye(3, {}, DType::Float64));
  CHECK(distance(grad(svdvals(one).sum(), one), eye(3, {}, DType::Float64)) < 1e-12);
  CHECK(distance(grad(eigvalsh(one).sum(), one), eye(3, {}, DType::Float64)) < 1e-12);
  const Tensor two = eye(3, {}, DType::Float64) * 2.0;
  check_derivatives(
      [](const Tensors& in) { return Tensors{matrix_sqrth(in[0] + transpose(in[0]))}; }, {two});
  check_derivatives(
      [](const Tensors& in) {
        const Polar f = polar(in[0]);
        return Tensors{f.u, f.p};
      },
      {two});
  CHECK(matrix_rank(a).item() == 2);
  CHECK(matrix_rank(a, {.atol = 5}).item() == 1);
  CHECK(distance(matmul(matmul(a, pinv(a)), a), a) < 1e-12);
  const LeastSquares least = lstsq(a, a);
  CHECK(least.rank.item() == 2);
  CHECK(distance(least.solution, matmul(pinv(a), a)) < 1e-12);
  CHECK(slogdet(zeros({2, 2}, DType::Float64)).sign.item() == 0);
  CHECK(slogdet(zeros({2, 2}, DType::Float64)).logabsdet.item() ==
        -std::numeric_limits<double>::infinity());
  CHECK(det(zeros({0, 0}, DType::Float64)).item() == 1);
  CHECK(std::isnan(logdet(Tensor::from({-1.0}, {1, 1})).item()));
  const Checked good = inv_ex(eye(2)), bad = inv_ex(zeros({2, 2}));
  CHECK(good.info.item() == 0);
  CHECK(bad.info.item() == 1);
  CHECK(solve_ex(zeros({2, 2}), ones({2, 2})).info.item() == 1);
  CHECK(cholesky_ex(Tensor::from({1.0, 0.0, 0.0, -1.0}, {2, 2})).info.item() == 2);
}

TEST_CASE("linalg: in compiled functions, and broadcast batches") {
  using namespace linalg;
  const CompiledFunction f = compile([](const Tensors& in) {
    return Tensors{solve(in[0], in[1]), det(in[0])};
  });
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Tensor a = draw({3, 3}, seed + 30), b = draw({3, 2}, seed + 40);
    const Tensors out = f({a, b});
    CHECK(distance(out[0], solve(a, b)) == 0);
    CHECK(distance(out[1], det(a)) == 0);
  }
  const Tensor a = draw({5, 1, 3, 3}, 50), b = draw({4, 3, 2}, 51), v = draw({5, 1, 3}, 52);
  CHECK(distance(matmul(a, solve(a, b)), broadcast_to(b, {5, 4, 3, 2})) < 1e-12);
  CHECK(distance(matmul(a, unsqueeze(solve(a, v), -1)), unsqueeze(v, -1)) < 1e-12);
  CHECK(solve(a, draw({3}, 53)).shape() == Shape{5, 1, 3});
  CHECK(distance(matmul(tril(a), solve_triangular(a, b)), broadcast_to(b, {5, 4, 3, 2})) < 1e-10);
}

TEST_CASE("linalg: matrices in a different order of work give the same bits") {
  const Tensor many = draw({300, 9, 9}, 60);
  const Tensor together = linalg::inv(many);
  for (const std::int64_t k : {0, 1, 150, 299})
    CHECK(equal(select(together, 0, k), linalg::inv(select(many, 0, k))));
}

TEST_CASE("linalg: refusals name the operation and the matrices") {
  using namespace linalg;
  CHECK_THROWS_AS(inv(zeros({2, 3})), ShapeError);
  CHECK_THROWS_AS(inv(zeros({3})), ShapeError);
  CHECK_THROWS_AS(inv(zeros({3, 3}, DType::Int64)), DTypeError);
  CHECK_THROWS_AS(inv(zeros({3, 3}, DType::BFloat16)), DTypeError);
  CHECK_THROWS_AS(polar(zeros({2, 3})), ShapeError);
  CHECK_THROWS_AS(solve(zeros({3, 3}), zeros({4, 2})), ShapeError);
  CHECK_THROWS_AS(solve(zeros({3, 3}), zeros({3, 2}, DType::Float64)), DTypeError);
  CHECK_THROWS_AS(lstsq(zeros({3, 3}), zeros({4, 2})), ShapeError);
  CHECK_THROWS_AS(svd_lowrank(zeros({3, 3}), 4), ValueError);
  CHECK_THROWS_AS(tensorinv(zeros({2, 3}), 1), ShapeError);
  CHECK_THROWS_AS(tensorsolve(zeros({2, 3}), zeros({4})), ShapeError);
  CHECK_THROWS_AS(householder_product(zeros({3, 2}), zeros({3})), ShapeError);
  CHECK(message_of([] {
          (void)inv(zeros({2, 2})).compute();
        }) == "linalg::inv: the matrix is singular: U has a zero in row 1 of its diagonal");
  const Tensor two = stack({eye(2), Tensor::from({1.0F, 2.0F, 2.0F, 1.0F}, {2, 2})});
  CHECK(message_of([&] { (void)cholesky(two).compute(); }) ==
        "linalg::cholesky: matrix 1 of the batch is not positive definite: its leading minor of 2 "
        "rows is not");
  const Tensor nan = full({2, 2}, std::nan(""));
  CHECK(message_of([&] {
          (void)svdvals(nan).compute();
        }).find("linalg::svdvals: the matrix has a NaN") == 0);
  const Tensor x = variable(draw({3, 3}, 70));
  CHECK_THROWS_AS(grad(eig(x).real.sum(), x), NotSupported);
  CHECK_THROWS_AS(grad(geqrf(x).packed.sum(), x), NotSupported);
}

// Cases of the element-wise primitives: each function on its domain, broadcasting, numbers,
// where().
#include "cases/cases.h"

using namespace tenon;

namespace cases {
namespace {

void add_unary(Cases& cases) {
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&);
    double low, high;
  };
  const Row rows[] = {{"neg", neg, -2, 2},       {"abs", abs, -2, 2},
                      {"sign", sign, -2, 2},     {"exp", exp, -3, 3},
                      {"expm1", expm1, -1, 1},   {"log", log, 0.1, 4},
                      {"log1p", log1p, -0.8, 4}, {"sqrt", sqrt, 0.1, 4},
                      {"rsqrt", rsqrt, 0.1, 4},  {"reciprocal", reciprocal, 0.3, 3},
                      {"square", square, -2, 2}, {"sin", sin, -9, 9},
                      {"cos", cos, -9, 9},       {"tan", tan, -1, 1},
                      {"tanh", tanh, -4, 4},     {"sigmoid", sigmoid, -6, 6},
                      {"relu", relu, -2, 2},     {"erf", erf, -3, 3},
                      {"floor", floor, -4, 4},   {"ceil", ceil, -4, 4},
                      {"round", round, -4, 4},   {"trunc", trunc, -4, 4},
                      {"log2", log2, 0.1, 4},    {"log10", log10, 0.1, 4},
                      {"exp2", exp2, -3, 3},     {"sinh", sinh, -3, 3},
                      {"cosh", cosh, -3, 3},     {"atan", atan, -5, 5},
                      {"asin", asin, -0.9, 0.9}, {"acos", acos, -0.9, 0.9}};
  const Shape shapes[] = {{3, 5}, {}, {0, 4}, {37}, {2, 1, 9}, {1}, {2, 3, 2, 5}};
  for (const Row& r : rows) {
    // Functions with steps: 16-bit results differ by a whole unit where fusion keeps more digits.
    const bool steps = r.f == static_cast<Tensor (*)(const Tensor&)>(floor) ||
                       std::string(r.name) == "ceil" || std::string(r.name) == "round" ||
                       std::string(r.name) == "trunc";
    for (const Shape& shape : {shapes[number_of(r.name) % 7], Shape{67}})
      cases.push_back({std::string(r.name) + shape.str(),
                       {{shape, r.low, r.high}},
                       [f = r.f](const Tensors& x) { return f(x[0] * 1.0); },
                       true,
                       true,
                       !steps});
  }
}

void add_binary(Cases& cases) {
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&, const Tensor&);
    double low;
  };
  const Row rows[] = {{"add", add, -2},         {"sub", sub, -2},
                      {"mul", mul, -2},         {"div", div, 0.4},
                      {"pow", pow, 0.4},        {"maximum", maximum, -2},
                      {"minimum", minimum, -2}, {"remainder", remainder, 0.6},
                      {"atan2", atan2, 0.3}};
  const std::pair<Shape, Shape> shapes[] = {{{3, 5}, {3, 5}}, {{2, 1, 3}, {4, 1}}, {{}, {7}},
                                            {{0, 3}, {1, 3}}, {{5, 1}, {1, 6}},    {{33, 17}, {17}},
                                            {{1}, {1, 1}},    {{4, 33}, {4, 1}}};
  for (const Row& r : rows)
    for (std::size_t n = 0; n < 3; ++n) {
      const auto& [a, b] = shapes[(number_of(r.name) + n) % 8];
      cases.push_back({std::string(r.name) + a.str() + b.str(),
                       {{a, r.low, 2.3}, {b, r.low, 2.3}},
                       [f = r.f](const Tensors& x) { return f(x[0], x[1]); },
                       true,
                       true,
                       std::string(r.name) != "remainder"});
    }
  cases.push_back({"pow of negative", {{{9}, -2, 2}}, [](const Tensors& x) {
                     return pow(x[0], 3) + pow(x[0], 2);
                   }});
  cases.push_back({"pow fraction", {{{9}, 0.2, 2}}, [](const Tensors& x) {
                     return pow(x[0], 2.5) + pow(x[0], -1.5) + pow(x[0], 0.5);
                   }});
  cases.push_back(
      {"pow of number", {{{9}, -2, 2}}, [](const Tensors& x) { return pow(2.5, x[0]); }});
  cases.push_back({"numbers", {{{3, 7}, 0.5, 2}}, [](const Tensors& x) {
                     return 3 - x[0] / 2 + 1.5 / x[0] * (x[0] - 0.25) + (2 + x[0]);
                   }});
  cases.push_back(
      {"plain numbers beyond float64", {{{5}}, whole({5}, -3, 4)}, [](const Tensors& x) {
         constexpr std::int64_t odd = (std::int64_t{1} << 53) + 1;
         const Tensor far = where(lt(x[1] + odd, odd), odd - 2, clamp(x[1], 0, odd));
         const Tensor near = (x[1] + odd) - arange(odd - 1, odd + 4);
         return x[0] * (near + where(lt(x[1], 0), far - (odd - 1), far));
       }});
  cases.push_back({"plain numbers that are zero",
                   {{{7}, 0.4, 2}},
                   [](const Tensors& x) { return x[0] / -0.0; },
                   false});
  cases.push_back({"plain numbers beyond float16", {{{9}}}, [](const Tensors& x) {
                     return x[0] * 1000 / 70000 + x[0];
                   }});
  cases.push_back({"floor_divide",
                   {{{8}, 1.2, 9}, {{8}, 1, 2}},
                   [](const Tensors& x) { return floor_divide(x[0], x[1]) * x[0]; },
                   true,
                   true,
                   false});
  cases.push_back({"detach", {{{5}}}, [](const Tensors& x) { return detach(x[0]) * x[0]; }, false});
  cases.push_back({"same tensor twice", {{{5}}}, [](const Tensors& x) {
                     return x[0] * x[0] + x[0] / (x[0] * x[0] + 1);
                   }});
}

void add_choices(Cases& cases) {
  using Compare = Tensor (*)(const Tensor&, const Tensor&);
  const std::pair<const char*, Compare> rows[] = {{"eq", eq}, {"ne", ne}, {"lt", lt},
                                                  {"le", le}, {"gt", gt}, {"ge", ge}};
  for (const auto& [name, f] : rows)
    cases.push_back({std::string("where ") + name, {{{4, 9}}, {{9}}}, [f = f](const Tensors& x) {
                       return where(f(x[0], x[1]), x[0] * 2, exp(x[1]));
                     }});
  const std::pair<const char*, Compare> logical[] = {
      {"and", logical_and}, {"or", logical_or}, {"xor", logical_xor}};
  for (const auto& [name, f] : logical)
    cases.push_back(
        {std::string("where logical_") + name, {{{31}}, {{31}}}, [f = f](const Tensors& x) {
           return where(f(gt(x[0], 0.5), logical_not(lt(x[1], -0.5))), x[0], x[1]);
         }});
  cases.push_back({"where numbers", {{{5, 3}}}, [](const Tensors& x) {
                     return where(gt(x[0], 0), 1.5, where(lt(x[0], -1), x[0], 0));
                   }});
  cases.push_back({"where broadcast",
                   {whole({4, 1}, 0, 2, DType::Bool), {{3}}, {{2, 1, 1}}},
                   [](const Tensors& x) { return where(x[0], x[1], x[2]); }});
  cases.push_back({"isnan isinf isfinite",
                   {{{11}}},
                   [](const Tensors& x) {
                     const Tensor odd =
                         x[0] / where(gt(x[0], 1), 0, where(lt(x[0], -1), 1, x[0] * 0 + 2));
                     return cast(isnan(log(x[0])), x[0].dtype()) +
                            cast(isinf(odd), x[0].dtype()) * 2 +
                            cast(isfinite(odd), x[0].dtype()) * 4;
                   },
                   false,
                   false});
  cases.push_back({"clamp", {{{4, 9}}}, [](const Tensors& x) { return clamp(x[0], -1, 1.25); }});
  cases.push_back({"cast there and back", {{{4, 9}}}, [](const Tensors& x) {
                     return cast(cast(x[0] * 2, DType::Float64), x[0].dtype()) * x[0];
                   }});
  cases.push_back({"casts of whole numbers",
                   {{{6}},
                    whole({6}, -100, 100, DType::Int32),
                    whole({6}, 0, 2, DType::Bool),
                    whole({6}, 0, 250, DType::UInt8)},
                   [](const Tensors& x) { return x[0] * x[1] + x[2] * x[0] - x[3]; }});
  cases.push_back({"iota", {{{3, 7}}}, [](const Tensors& x) {
                     return x[0] * arange(0, 7) +
                            cast(unsqueeze(arange(1, 4, 1, DType::Float32), 1), x[0].dtype());
                   }});
}

void add_random(Cases& cases) {
  cases.push_back({"random",
                   {{{5, 3}}},
                   [](const Tensors& x) {
                     Generator g(7);
                     return x[0] * rand({5, 3}, x[0].dtype(), g) +
                            randn({3}, x[0].dtype(), g) * x[0] +
                            cast(randint(-3, 9, {5, 1}, DType::Int64, g), x[0].dtype());
                   },
                   true,
                   true,
                   true,
                   2e-6,
                   1e-6});  // the numbers themselves are float32
  cases.push_back({"dropout", {{{50}}}, [](const Tensors& x) {
                     Generator g(11);
                     return dropout(x[0] * 2, 0.4, true, g) + bernoulli({50}, 0.3, x[0].dtype(), g);
                   }});
}

}  // namespace

void add_elementwise(Cases& cases) {
  add_unary(cases);
  add_binary(cases);
  add_choices(cases);
  add_random(cases);
}

void add_activations(Cases& cases) {
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&);
  };
  const Row rows[] = {{"silu", silu},
                      {"softsign", softsign},
                      {"mish", mish},
                      {"hardtanh", hardtanh},
                      {"relu6", relu6},
                      {"hardsigmoid", hardsigmoid},
                      {"gelu", [](const Tensor& x) { return gelu(x); }},
                      {"gelu tanh", [](const Tensor& x) { return gelu(x, true); }},
                      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.2); }},
                      {"elu", [](const Tensor& x) { return elu(x, 1.5); }},
                      {"softplus", [](const Tensor& x) { return softplus(x, 2, 5); }},
                      {"dropout off", [](const Tensor& x) { return dropout(x, 0.5, false) * 2; }}};
  for (const Row& r : rows)
    cases.push_back({r.name, {{{3, 23}, -7, 7}}, [f = r.f](const Tensors& x) { return f(x[0]); }});
}

}  // namespace cases

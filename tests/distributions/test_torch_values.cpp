// Distributions compared with torch.distributions: log-probabilities and their gradients, moments,
// entropies, quantiles and divergences at random and extreme parameters (torch_values.txt, made by
// make_values.py). In float64 and float32.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <tenon/tenon.h>

using namespace tenon;
using namespace tenon::distributions;

namespace {

using Tensors = std::vector<Tensor>;
using Make = std::function<Distribution(const Tensors&)>;

template <class D>
Make of_one() {
  return [](const Tensors& p) { return D(p[0]); };
}
template <class D>
Make of_two() {
  return [](const Tensors& p) { return D(p[0], p[1]); };
}
template <class D, class Form>
Make of_form() {
  return [](const Tensors& p) { return D(Form{p[0]}); };
}
template <class D>
Make of_number_and_probs() {
  return [](const Tensors& p) { return D(p[0], Probs{p[1]}); };
}

// The sizes of a value, and of each parameter, after the batch.
struct Kind {
  Make make;
  Shape event{};
  std::vector<Shape> parameters{{}, {}, {}};
};

const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> all{
      {"Normal", {of_two<Normal>()}},
      {"LogNormal", {of_two<LogNormal>()}},
      {"HalfNormal", {of_one<HalfNormal>()}},
      {"Cauchy", {of_two<Cauchy>()}},
      {"HalfCauchy", {of_one<HalfCauchy>()}},
      {"Laplace", {of_two<Laplace>()}},
      {"Gumbel", {of_two<Gumbel>()}},
      {"Uniform", {[](const Tensors& p) { return Uniform(p[0], p[0] + p[1]); }}},
      {"Exponential", {of_one<Exponential>()}},
      {"Gamma", {of_two<Gamma>()}},
      {"Chi2", {of_one<Chi2>()}},
      {"InverseGamma", {of_two<InverseGamma>()}},
      {"Beta", {of_two<Beta>()}},
      {"StudentT", {[](const Tensors& p) { return StudentT(p[0], p[1], p[2]); }}},
      {"Weibull", {of_two<Weibull>()}},
      {"Pareto", {of_two<Pareto>()}},
      {"VonMises", {of_two<VonMises>()}},
      {"ContinuousBernoulli", {of_form<ContinuousBernoulli, Probs>()}},
      {"Bernoulli", {of_form<Bernoulli, Probs>()}},
      {"BernoulliLogits", {of_form<Bernoulli, Logits>()}},
      {"Binomial", {of_number_and_probs<Binomial>()}},
      {"Geometric", {of_form<Geometric, Probs>()}},
      {"Poisson", {of_one<Poisson>()}},
      {"NegativeBinomial", {of_number_and_probs<NegativeBinomial>()}},
      {"RelaxedBernoulli", {of_number_and_probs<RelaxedBernoulli>()}},
      {"Categorical", {of_form<Categorical, Probs>(), {}, {{5}}}},
      {"CategoricalLogits", {of_form<Categorical, Logits>(), {}, {{5}}}},
      {"OneHotCategorical", {of_form<OneHotCategorical, Logits>(), {4}, {{4}}}},
      {"Multinomial", {[](const Tensors& p) { return Multinomial(7, Logits{p[0]}); }, {3}, {{3}}}},
      {"RelaxedOneHotCategorical",
       {[](const Tensors& p) { return RelaxedOneHotCategorical(p[0], Logits{p[1]}); },
        {4},
        {{}, {4}}}},
      {"Dirichlet", {of_one<Dirichlet>(), {4}, {{4}}}},
      {"MultivariateNormal",
       {[](const Tensors& p) { return MultivariateNormal(p[0], ScaleTril{p[1]}); },
        {3},
        {{3}, {3, 3}}}},
      {"LowRankMultivariateNormal",
       {[](const Tensors& p) { return LowRankMultivariateNormal(p[0], p[1], p[2]); },
        {4},
        {{4}, {4, 2}, {4}}}},
      {"FisherSnedecor", {of_two<FisherSnedecor>()}},
      {"Kumaraswamy", {of_two<Kumaraswamy>()}},
      {"GeneralizedPareto", {[](const Tensors& p) { return GeneralizedPareto(p[0], p[1], p[2]); }}},
      {"Wishart",
       {[](const Tensors& p) { return Wishart(p[0], ScaleTril{p[1]}); }, {3, 3}, {{}, {3, 3}}}},
      {"LKJCholesky", {[](const Tensors& p) { return LKJCholesky(4, p[0]); }, {4, 4}}},
  };
  return all;
}

// The numbers of a line, before and after "=".
struct Line {
  std::string name;
  std::vector<double> before, after;
};
Line parsed(const std::string& text) {
  Line line;
  std::istringstream in(text);
  bool is_after = false;
  for (std::string word; in >> word;) {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (*end != 0)
      word == "=" ? is_after = true : (line.name = word, true);
    else
      (is_after ? line.after : line.before).push_back(value);
  }
  return line;
}

// The parameter that has the numbers: [batch..] + shape; one number if it is the same for all.
Tensor tensor_of(const std::vector<double>& numbers, const Shape& event, DType dtype) {
  Shape shape;
  const auto batch = static_cast<std::int64_t>(numbers.size()) / event.numel();
  if (batch > 1) shape.push_back(batch);
  for (const std::int64_t size : event) shape.push_back(size);
  return cast(Tensor::from(numbers, shape), dtype).compute();
}

// Whether the numbers are those expected, up to an error relative to the largest term.
bool near(double found, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(found);
  if (std::isinf(expected)) return found == expected;
  return std::abs(found - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

// Numbers that float32 does not have are not compared.
void check_numbers(const Tensor& tensor, const std::vector<double>& expected, double tolerance) {
  const bool is_wide = tensor.dtype() == DType::Float64;
  const std::vector<double> found = cast(tensor, DType::Float64).to_vector<double>();
  REQUIRE(found.size() == expected.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (!is_wide && std::isfinite(expected[k]) && std::abs(expected[k]) > 3e38) continue;
    INFO("element ", k);
    INFO(found[k], " instead of ", expected[k]);
    CHECK(near(found[k], expected[k], tolerance));
  }
}

// The gradients of the sum, one after another.
Tensor slopes(const Tensor& result, const Tensors& of) {
  Tensors flat;
  for (const Tensor& each : grad(sum(result), of)) flat.push_back(flatten(each));
  return concat(flat);
}

// In float32, values have rounding errors that steep densities multiply.
double tolerance_of(DType dtype, const std::string& family, const std::string& function) {
  if (family == "VonMises") return 1e-5;  // PyTorch's Bessel functions are approximations
  if (dtype == DType::Float64)
    return function == "kl" || function.starts_with("grad") ? 1e-8 : 1e-9;
  return 2e-2;
}

class Checker {
 public:
  Checker(const Kind& kind, Tensors parameters, DType dtype)
      : kind_(kind), parameters_(std::move(parameters)), dtype_(dtype) {}

  void check(const Line& line) const {
    const Distribution d = kind_.make(parameters_);
    const double tolerance = tolerance_of(dtype_, d.name(), line.name);
    INFO("function ", line.name);
    if (line.name == "grad" || line.name == "grad_parameters")
      return check_slopes(d, line, tolerance);
    check_numbers(result(d, line), line.after, tolerance);
  }

 private:
  Tensor result(const Distribution& d, const Line& line) const {
    const std::string& name = line.name;
    if (name == "log_prob") return d.log_prob(tensor_of(line.before, kind_.event, dtype_));
    if (name == "cdf") return d.cdf(tensor_of(line.before, {}, dtype_));
    if (name == "icdf") return d.icdf(tensor_of(line.before, {}, dtype_));
    if (name == "grad_entropy") return slopes(d.entropy(), parameters_);
    if (name == "entropy") return d.entropy();
    if (name == "mean") return d.mean();
    if (name == "variance") return d.variance();
    REQUIRE(name == "mode");
    return d.mode();
  }
  void check_slopes(const Distribution& d, const Line& line, double tolerance) const {
    const Tensor x = tensor_of(line.before, kind_.event, dtype_);
    Tensors of = parameters_;
    if (line.name == "grad") of.insert(of.begin(), x);
    check_numbers(slopes(d.log_prob(x), of), line.after, tolerance);
  }

  const Kind& kind_;
  Tensors parameters_;
  DType dtype_;
};

Tensors read_parameters(std::istream& file, const Kind& kind, std::size_t count, DType dtype) {
  Tensors out;
  std::string text;
  for (std::size_t k = 0; k < count && std::getline(file, text); ++k)
    out.push_back(tensor_of(parsed(text).before, kind.parameters[k], dtype));
  return out;
}

void check_pair(std::istream& file, const std::string& p, const std::string& q,
                std::istream& counts, DType dtype) {
  std::size_t batch = 0, of_p = 0, of_q = 0;
  counts >> batch >> of_p >> of_q;
  INFO("pair ", p, " ", q);
  Kind left = kinds().at(p), right = kinds().at(q);
  if (left.event == Shape{4} && right.event == Shape{3}) left.parameters = {{3}, {3, 2}, {3}};
  if (left.event == Shape{3} && right.event == Shape{4}) right.parameters = {{3}, {3, 2}, {3}};
  const Tensors a = read_parameters(file, left, of_p, dtype);
  const Tensors b = read_parameters(file, right, of_q, dtype);
  std::string text;
  std::getline(file, text);
  const Line line = parsed(text);
  check_numbers(kl_divergence(left.make(a), right.make(b)), line.after,
                tolerance_of(dtype, p, "kl"));
}

void check_all(DType dtype) {
  std::ifstream file("tests/distributions/torch_values.txt");
  REQUIRE(file.good());
  std::unique_ptr<Checker> checker;
  std::string text, family;
  int checked = 0;
  while (std::getline(file, text)) {
    std::istringstream head(text);
    std::string kind, name, other;
    head >> kind >> name;
    ++checked;
    if (kind == "pair") {
      head >> other;
      check_pair(file, name, other, head, dtype);
    } else if (kind == "family") {
      std::size_t batch = 0, count = 0;
      head >> batch >> count;
      family = name;
      const Kind& of = kinds().at(name);
      checker = std::make_unique<Checker>(of, read_parameters(file, of, count, dtype), dtype);
    } else {
      INFO("family ", family);
      checker->check(parsed(text));
    }
  }
  CHECK(checked > 200);
}

}  // namespace

TEST_CASE("distributions.torch_values") { check_all(DType::Float64); }
TEST_CASE("distributions.torch_values_float32") { check_all(DType::Float32); }

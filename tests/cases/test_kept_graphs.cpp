// Which tensors keep their graph (docs/gradients.md): a gradient is right or refused, wherever the
// program evaluates, prints or assigns; and memory does not grow with carried state.
#include <doctest/doctest.h>

#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <tenon/tenon.h>

#include "graph/node_pool.h"
#include "graph/op.h"
#include "ops/table.h"

using namespace tenon;

namespace {

using Doubles = std::vector<double>;

Tensor doubles(const Doubles& values) { return Tensor::from(values, {std::ssize(values)}); }
Doubles list(const Tensor& t) { return t.to_vector<double>(); }

// A random program. The same seed builds the same graph, with or without interruptions.
class RandomProgram {
 public:
  enum class Interrupt { Never, Evaluate, EvaluateAndStep };

  RandomProgram(unsigned seed, Interrupt when) : random_(seed), interrupt_(when) {
    for (int k = 0; k < 2; ++k) {
      variables_.push_back(variable(doubles(draw_values()), "w" + std::to_string(k)));
      plain_.push_back(doubles(draw_values()));
    }
    for (const auto* leaves : {&variables_, &plain_})
      tensors_.insert(tensors_.end(), leaves->begin(), leaves->end());
    for (int k = 0; k < 10; ++k) {
      tensors_.push_back(next());
      interrupt();
    }
    for (int k = 0; k < 3; ++k) {
      const Tensor& term = pick();
      output_ = k == 0 ? term.sum() : output_ * (term * pick()).sum();
    }
    interrupt();
    if (interrupt_ != Interrupt::Never && below(2) == 0) output_.item();
  }

  const std::vector<Tensor>& variables() const { return variables_; }
  const std::vector<Tensor>& plain() const { return plain_; }
  // A tensor that the program has computed.
  const Tensor& inner(std::size_t k) const { return tensors_[4 + k % (tensors_.size() - 4)]; }
  const Tensor& output() const { return output_; }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }
  const Tensor& pick() { return tensors_[below(tensors_.size())]; }
  Doubles draw_values() {
    Doubles out;
    for (int k = 0; k < 3; ++k) out.push_back(0.5 + static_cast<double>(below(1000)) / 1000);
    return out;
  }

  Tensor next() {
    const Tensor a = pick(), b = pick();
    switch (below(10)) {
      case 0:
        return a * b;
      case 1:
        return a + b * 0.5;
      case 2:
        return sin(a);
      case 3:
        return exp(square(a) * -1);
      case 4:
        return a / (square(b) + 1);
      case 5:
        return concat({slice(a, 0, 1, 3), slice(b, 0, 0, 1)}, 0);
      case 6:
        return a.mean() + b;
      case 7:
        return detach(a * 1.5);
      case 8:
        return floor(a * 8) / 8;
      default:
        return tanh(a - b);
    }
  }

  // Draws the same numbers whether or not it acts.
  void interrupt() {
    const std::size_t what = below(6);
    const Tensor& t = pick();
    if (interrupt_ == Interrupt::Never) return;
    if (what == 0) t.compute();
    if (what == 1) (void)t.str();
    if (what == 2) (void)t.sum().item();
    if (what == 3 && interrupt_ == Interrupt::EvaluateAndStep) {
      optim::Sgd sgd(variables_, {.lr = 0.0});  // the values stay, so the gradients must stay
      sgd.step((t + variables_[0] + variables_[1]).sum());
    }
  }

  std::mt19937 random_;
  Interrupt interrupt_;
  std::vector<Tensor> variables_, plain_, tensors_;
  Tensor output_;
};

struct Outcomes {
  int right = 0, refused = 0, wrong = 0;

  void count(const Tensor& output, const Tensor& input, const Doubles& expected) {
    Doubles found;
    try {
      found = list(grad(output, input));
    } catch (const ValueError&) {
      ++refused;
      return;
    }
    double error = 0, norm = 0;
    for (std::size_t k = 0; k < expected.size(); ++k) {
      error += (found[k] - expected[k]) * (found[k] - expected[k]);
      norm += expected[k] * expected[k];
    }
    ++(error <= 1e-20 * (norm + 1) ? right : wrong);
  }
};

// One target at a time, so that a refusal of one does not hide another.
void try_program(unsigned seed, RandomProgram::Interrupt interrupt, Outcomes& variables,
                 Outcomes& others) {
  const RandomProgram calm(seed, RandomProgram::Interrupt::Never);
  const auto compare = [&](const auto& target_of, Outcomes& outcomes) {
    const Doubles expected = list(grad(calm.output(), target_of(calm)));
    try {
      const RandomProgram program(seed, interrupt);
      outcomes.count(program.output(), target_of(program), expected);
    } catch (const ValueError&) {  // a tensor that an assignment has overtaken was read
      ++outcomes.refused;
    }
  };
  for (std::size_t k = 0; k < 2; ++k) {
    compare([&](const RandomProgram& p) { return p.variables()[k]; }, variables);
    compare([&](const RandomProgram& p) { return p.plain()[k]; }, others);
    compare([&](const RandomProgram& p) { return p.inner(seed + k); }, others);
  }
}

void refuses(const std::function<void()>& f, const char* what) {
  CHECK_THROWS_WITH_AS(f(), doctest::Contains(what), ValueError);
}

}  // namespace

TEST_CASE("kept graphs: evaluating at random places leaves gradients right, or they are refused") {
  Outcomes variables, others;
  for (unsigned seed = 0; seed < 400; ++seed)
    try_program(seed, RandomProgram::Interrupt::Evaluate, variables, others);
  CHECK(variables.wrong == 0);
  CHECK(variables.refused == 0);  // what depends on a variable keeps its graph
  CHECK(others.wrong == 0);
  CHECK(others.refused > 100);
  CHECK(others.right > 400);
}

TEST_CASE("kept graphs: with optimizer steps too") {
  Outcomes variables, others;
  for (unsigned seed = 1000; seed < 1300; ++seed)
    try_program(seed, RandomProgram::Interrupt::EvaluateAndStep, variables, others);
  CHECK(variables.wrong == 0);
  CHECK(variables.right > 100);
  CHECK(others.wrong == 0);
  CHECK(others.right > 100);
}

TEST_CASE("kept graphs: a path through a value that was read is not left out") {
  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F}, {3});
  const Tensor unread = square(x).sum();
  CHECK(grad(unread * x.sum(), x).to_vector<float>() == std::vector<float>{26, 38, 50});
  const Tensor read = square(x).sum();
  CHECK(read.item() == 14);
  refuses([&] { grad(read * x.sum(), x); }, "make the input a variable()");
  refuses([&] { grad(read * x.sum(), std::vector<Tensor>{variable(ones({2})), x}); }, "evaluated");
  CHECK(grad(read.detach() * x.sum(), x).to_vector<float>() == std::vector<float>{14, 14, 14});

  const Tensor v = variable(x), kept = square(v).sum();
  CHECK(kept.item() == 14);
  CHECK(grad(kept * v.sum(), v).to_vector<float>() == std::vector<float>{26, 38, 50});
}

TEST_CASE("kept graphs: features made once beside a training loop") {
  const Tensor x = doubles({0.1, 0.2, 0.3}), sines = sin(x);
  nn::Linear net(3, 1);
  optim::Sgd sgd(net, {.lr = 0.1});
  sgd.step(net(sines.to(DType::Float32).unsqueeze(0)).sum());
  refuses([&] { grad((sines * x).sum(), x); }, "sin");
}

TEST_CASE("kept graphs: a value is a source of what is computed from it, and of nothing else") {
  const Tensor a = doubles({1, 2}), b = doubles({3, 4});
  const Tensor from_a = exp(a).compute(), from_both = (from_a * b).compute();
  CHECK(list(grad((from_a * b).sum(), b)) == list(from_a));
  refuses([&] { grad((from_both * a).sum(), a); }, "evaluated");
  refuses([&] { grad((from_both * b).sum(), b); }, "evaluated");
  const Tensor c = doubles({5, 6});
  CHECK(list(grad((from_both * c).sum(), c)) == list(from_both));
  // A step of a staircase has the slope 0, whatever it is computed from.
  const Tensor stairs = floor(a * 2).compute();
  CHECK(list(grad((stairs * a).sum(), a)) == list(stairs));
  const Tensor scaled = (floor(a * 2) * b).compute();
  CHECK(list(grad((scaled * a).sum(), a)) == list(scaled));
  refuses([&] { grad((scaled * b).sum(), b); }, "evaluated");
}

TEST_CASE("kept graphs: the operations that are flat are those whose rule gives no gradient") {
  for (int k = 0; k < kOpCount; ++k) {
    const Op op = static_cast<Op>(k);
    const bool gives_none = op_info(op).vjp == op_info(Op::Floor).vjp;
    CHECK_MESSAGE(has_trait(op, kFlat) == gives_none, op_info(op).name);
  }
}

TEST_CASE("kept graphs: a detached tensor can be an input too") {
  const Tensor b = doubles({3, 4}), v = variable(doubles({1, 2}));
  Tensor constant;
  {
    const NoGrad constants;
    constant = v * 2;
  }
  for (const Tensor& x : {detach(v * 2), constant, floor(b * 2), detach(v * 2).compute()}) {
    const Tensor unread = x * b, read = (x * b).compute();
    CHECK(list(grad((unread * x).sum(), x)) == list(x * b * 2));
    refuses([&] { grad((read * x).sum(), x); }, "evaluated");
    CHECK(list(grad((read * v).sum(), v)) == list(read));  // the path ends at x
  }
}

TEST_CASE("kept graphs: a path through the result of an assignment is not left out") {
  const Tensor x = doubles({1, 2}), target = variable(doubles({3, 4})), v = variable(x);
  const Tensor unread = assign(target, x * 2);
  CHECK(list(grad((unread * x).sum(), x)) == Doubles{4, 8});
  unread.compute();
  const Tensor read = assign(target, x * 2).compute(),
               by_variable = assign(target, v * 2).compute();
  refuses([&] { grad((read * x).sum(), x); }, "evaluated");
  refuses([&] { grad(((read * 1.0).compute() * x).sum(), x); }, "evaluated");
  refuses([&] { grad((by_variable * v).sum(), v); }, "evaluated");
  Tensor far = by_variable;
  for (int k = 0; k < 1000; ++k) far = far * 1.0001;
  far.compute();
  refuses([&] { grad((far * v).sum(), v); }, "evaluated");
  CHECK(list(grad((read.detach() * x).sum(), x)) == list(read));
  CHECK(list(grad((target * x).sum(), x)) == list(target));  // a variable has no graph
  const Tensor later = doubles({5, 6});
  CHECK(list(grad((read * later).sum(), later)) == list(read));
  Tensor moved;
  {
    const NoGrad constants;
    moved = assign(target, x * 2).compute();
  }
  CHECK(list(grad((moved * x).sum(), x)) == list(moved));
  // The assignments that a value carries are not part of it.
  const Tensor carrier = with_updates(later * 3, {assign(target, x * 4)}).compute();
  CHECK(list(grad((carrier * x).sum(), x)) == list(carrier));
}

TEST_CASE("kept graphs: a long chain of operations is refused as a short one is") {
  const Tensor x = doubles({1, 2});
  Tensor y = x;
  for (int k = 0; k < 1000; ++k) y = y * 1.0001;
  y.compute();
  refuses([&] { grad((y * x).sum(), x); }, "evaluated");
  const Tensor later = doubles({3, 4});
  CHECK(list(grad((y * later).sum(), later)) == list(y));
}

TEST_CASE(
    "kept graphs: data of a long chain of operations trains a network that was built before") {
  const Tensor w = variable(doubles({3, 4})), of_w = exp(w);
  Tensor data = doubles({1, 2});
  for (int k = 0; k < 1000; ++k) data = data * 1.0001;
  data.compute();
  CHECK(list(grad((data * w).sum(), w)) == list(data));
  CHECK(list(grad((data * of_w).sum(), of_w)) == list(data));
  optim::Sgd sgd(std::vector<Tensor>{w}, {.lr = 0.5});
  sgd.step((data * w).sum());
  CHECK(list(w) == list(doubles({3, 4}) - data * 0.5));
}

TEST_CASE("kept graphs: a tensor that was built before an assignment has no gradient any more") {
  const Tensor w = variable(doubles({3}), "weight");
  const Tensor square_of_w = w * w, twice = square_of_w * 2;
  CHECK(twice.item() == 18);
  assign(w, doubles({5})).compute();
  refuses([&] { grad(twice.sum(), w); }, "was built before the variable weight");
  CHECK(grad((w * w).sum(), w).item() == 10);
}

TEST_CASE("kept graphs: under NoGrad tensors are constants, evaluated or not") {
  const Tensor w = variable(doubles({3})), x = doubles({2});
  Tensor pending, evaluated;
  {
    const NoGrad outer;
    pending = w * x;
    {
      const NoGrad inner;
      evaluated = (w * x).compute();
    }
    std::thread([&] { CHECK(grad((w * x).sum(), w).item() == 2); }).join();
    CHECK(grad((w * pending).sum(), w).item() == 0);
  }
  for (const Tensor& constant : {pending, evaluated}) {
    CHECK(grad((w * constant).sum(), w).item() == 6);
    CHECK(grad((x * constant).sum(), x).item() == 6);
  }
  CHECK(grad((w * x).sum(), w).item() == 2);
}

TEST_CASE("kept graphs: NoGrad inside the body of a loop or a branch") {
  const Tensor w = variable(doubles({2, 3})), xs = ones({3, 2}, DType::Float64);
  const auto step = [&](const Tensor& carry, const Tensor& x) {
    Tensor constant;
    {
      const NoGrad constants;
      constant = w * carry;
    }
    return constant * w + x;
  };
  Tensor looped = ones({2}, DType::Float64);
  for (int k = 0; k < 3; ++k) looped = step(looped, select(xs, 0, k));
  const Tensor scanned = scan(
                             [&](const Tensor& carry, const Tensor& x) {
                               const Tensor next = step(carry, x);
                               return std::pair(next, next);
                             },
                             ones({2}, DType::Float64), xs)
                             .first;
  CHECK(list(scanned) == list(looped));
  CHECK(list(grad(scanned.sum(), w)) == list(grad(looped.sum(), w)));

  const std::vector<Tensor> chosen = cond(
      gt(w.sum(), 0),
      [&](const std::vector<Tensor>& in) {
        const NoGrad constants;
        return std::vector<Tensor>{in[0] * w};
      },
      [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + w}; }, {w});
  CHECK(list(grad((chosen[0] * w).sum(), w)) == Doubles{4, 9});
}

TEST_CASE(
    "kept graphs: a compiled function has the NoGrad of compile(), not that of its first call") {
  const Tensor w = variable(doubles({2, 3})), x = doubles({1, 4});
  const auto gradient = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{grad((w * w * in[0]).sum(), w)};
  };
  const CompiledFunction learns = compile(gradient);
  {
    const NoGrad constants;
    CHECK(list(learns({x})[0]) == Doubles{4, 24});
    const CompiledFunction constant = compile(gradient);
    CHECK(list(constant({x})[0]) == Doubles{0, 0});
  }
  CHECK(list(learns({x})[0]) == Doubles{4, 24});
}

TEST_CASE("kept graphs: carried state takes no more memory with every step") {
  nn::GRUCell cell(4, 8);
  const Tensor x = zeros({1, 4}).compute(), w = variable(ones({8}));
  Tensor learned = zeros({1, 8}), plain = zeros({1, 8}), detached = zeros({1, 8});
  const auto steps = [&](int count) {
    for (int k = 0; k < count; ++k) {
      {
        const NoGrad constants;
        learned = cell(x, learned);
        learned.compute();
      }
      plain = tanh(plain * 0.5 + 1);
      plain.compute();
      detached = tanh(detached * w).detach();
      detached.compute();
    }
  };
  steps(500);
  const std::int64_t before = node_bytes(), used = runner_stats().memory_in_use;
  steps(5000);
  CHECK(node_bytes() == before);
  CHECK(runner_stats().memory_in_use == used);
}

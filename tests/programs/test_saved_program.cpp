// Saved programs: batch sizes, state, random numbers, loops, refusals, damaged and hostile files.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <tenon/compute.h>
#include <tenon/containers.h>
#include <tenon/device.h>
#include <tenon/error.h>
#include <tenon/fft.h>
#include <tenon/function.h>
#include <tenon/grad.h>
#include <tenon/host_call.h>
#include <tenon/layers.h>
#include <tenon/linalg.h>
#include <tenon/loops.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/saved_program.h>
#include <tenon/shapes_only.h>
#include <tenon/special.h>
#include <tenon/transformer.h>

#include "cuda/gpu.h"
#include "io/folder.h"
#include "io/text/json.h"
#include "programs/batch_sizes.h"
#include "programs/program_file.h"

using namespace tenon;

namespace {

using Tensors = std::vector<Tensor>;
using Code = CompiledFunction::Body;

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(),
                     static_cast<std::size_t>(a.numel()) * item_size(a.dtype())) == 0;
}

Code of_one(const std::function<Tensor(const Tensor&)>& f) {
  return [f](const Tensors& in) { return Tensors{f(in[0])}; };
}

SavedProgram saved(const Code& f, const Tensors& inputs, const SaveProgramOptions& options = {},
                   const OptionalGenerator& generator = {}) {
  const TestFolder folder;
  save_program(folder / "p.tenon", f, inputs, options);
  return load_program(folder / "p.tenon", generator);
}

template <class E, class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

double max_abs_difference(const Tensor& a, const Tensor& b) {
  double most = 0;
  const auto left = a.to_vector<float>(), right = b.to_vector<float>();
  for (std::size_t k = 0; k < left.size(); ++k)
    most = std::max(most, std::fabs(double{left[k]} - double{right[k]}));
  return most;
}

nn::Sequential small_network() {
  manual_seed(3);
  nn::Sequential net(nn::Conv2d(1, 4, 3, {.padding = 1}), nn::BatchNorm2d(4), nn::ReLU(),
                     nn::MaxPool2d(2), nn::Flatten(), nn::Linear(4 * 4 * 4, 10));
  return net;
}

}  // namespace

TEST_CASE("saved programs: a network with any batch size") {
  nn::Sequential net = small_network();
  net.eval();
  const Code f = of_one([&](const Tensor& x) { return softmax(net(x)); });
  const SavedProgram program = saved(f, {zeros({4, 1, 8, 8})}, {.batched = {0}});
  REQUIRE(program.inputs().size() == 1);
  CHECK(program.inputs()[0].batched);
  CHECK(program.inputs()[0].dtype == DType::Float32);
  CHECK(program.result_count() == 1);
  for (const std::int64_t n : {4, 1, 2, 7, 32}) {
    CAPTURE(n);
    const Tensor x = randn({n, 1, 8, 8}).compute();
    CHECK(same_bits(program({x})[0], compile(f)({x})[0]));
  }
  CHECK(program({zeros({0, 1, 8, 8})})[0].shape() == Shape{0, 10});
}

TEST_CASE("saved programs: attention, a mean over the batch, several inputs and results") {
  manual_seed(5);
  nn::MultiheadAttention attention(8, 2);
  attention.eval();
  const Code f = [&](const Tensors& in) {
    const Tensor y = attention(in[0], in[0], in[0]) + unsqueeze(in[1], 1);
    return Tensors{y, mean(y), in[1], argmax(y, -1), mean(square(y - mean(y, {0}, true)), {0})};
  };
  const SavedProgram program = saved(f, {zeros({3, 5, 8}), zeros({3, 8})}, {.batched = {0, 1}});
  for (const std::int64_t n : {1, 3, 6}) {
    const Tensors in{randn({n, 5, 8}).compute(), randn({n, 8}).compute()};
    const Outputs got = program(in), wanted = compile(f)(in);
    REQUIRE(got.size() == 5);
    for (std::size_t k = 0; k < got.size(); ++k) {
      CAPTURE(k);
      CHECK(same_bits(got[k], wanted[k]));
    }
  }
}

TEST_CASE("cuda: a program that was saved on the CPU runs on a GPU") {
  if (!test::has_gpu()) return;
  const TestFolder folder;
  nn::Sequential net = small_network();
  net.eval();
  const Tensor x = randn({5, 1, 8, 8}).compute();
  save_program(folder / "p.tenon", of_one([&](const Tensor& in) { return net(in); }),
               {zeros({2, 1, 8, 8})}, {.batched = {0}});
  const Tensor wanted = net(x).compute();
  const ContextScope scope([] {
    Context context = current_context();
    context.device = device("cuda");
    return context;
  }());
  const SavedProgram program = load_program(folder / "p.tenon");
  const Tensor got = program({x.to(device("cuda")).compute()})[0];
  CHECK(got.device() == device("cuda"));
  CHECK(max_abs_difference(got, wanted) < 1e-5);
  CHECK(has(message<DeviceError>([&] { program({x}); }), "move the input with to()"));
}

TEST_CASE("saved programs: names, values and changes of weights") {
  nn::Sequential net(nn::Linear(3, 2));
  const SavedProgram program = saved(of_one([&](const Tensor& x) { return net(x) + 1.0; }),
                                     {zeros({1, 3})}, {.metadata = {{"classes", "a,b"}}});
  CHECK(program.metadata() == io::Metadata{{"classes", "a,b"}});
  REQUIRE(program.weights().size() == 2);
  for (const auto& [name, value] : program.weights()) {
    CAPTURE(name);
    CHECK(is_variable(value));
    CHECK(has(name, value.rank() == 2 ? "weight" : "bias"));
    set_value(value, zeros(value.shape()));
  }
  CHECK(program({ones({1, 3})})[0].to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("saved programs: assignments take effect") {
  const Tensor count = variable(scalar(1, DType::Float64), "count");
  const SavedProgram program = saved(
      [&](const Tensors& in) {
        const Tensor next = count * 2.0 + in[0];
        return Tensors{assign(count, next), next + 1.0};
      },
      {scalar(0, DType::Float64)});
  const Tensor one = scalar(1, DType::Float64).compute();
  CHECK(program({one})[1].item<double>() == 4);
  CHECK(program({one})[1].item<double>() == 8);
  CHECK(program.weights().at("count").item<double>() == 7);
  CHECK(count.item<double>() == 1);
}

TEST_CASE("saved programs: running statistics of a network in training mode") {
  nn::Sequential net = small_network();
  const Code f = of_one([&](const Tensor& x) { return net(x); });
  const SavedProgram program = saved(f, {zeros({4, 1, 8, 8})}, {.batched = {0}});
  for (const std::int64_t n : {4, 6}) {
    const Tensor x = randn({n, 1, 8, 8}).compute();
    CHECK(same_bits(program({x})[0], compile(f)({x})[0]));
  }
  int compared = 0;
  const auto state = net.state_dict();
  for (const auto& [name, value] : program.weights())
    for (const auto& [key, own] : state)
      if (has(name, "running_mean") && has(key, "running_mean")) {
        ++compared;
        CHECK(same_bits(value, own));
      }
  CHECK(compared == 1);
}

TEST_CASE("saved programs: an optimizer step as a program") {
  const Tensor w = variable(scalar(5, DType::Float64), "w");
  const SavedProgram step = saved(
      [&](const Tensors& in) {
        const Tensor loss = square(w - in[0]);
        return Tensors{loss, assign(w, w - 0.25 * grad(loss, w))};
      },
      {scalar(0, DType::Float64)});
  const Tensor target = scalar(1, DType::Float64).compute();
  for (int k = 0; k < 20; ++k) step({target});
  CHECK(step.weights().at("w").item<double>() == doctest::Approx(1).epsilon(1e-5));
}

TEST_CASE("saved programs: random numbers come from the generator of the loaded program") {
  const Code f = of_one([](const Tensor& x) { return dropout(x, 0.5) + rand(x.shape()); });
  const Tensor x = ones({64});
  const SavedProgram current = saved(f, {x}), own = saved(f, {x}, {}, Generator(11));
  manual_seed(11);
  const Outputs a = compile(f)({x});
  manual_seed(11);
  CHECK(same_bits(current({x})[0], a[0]));
  CHECK(same_bits(own({x})[0], a[0]));
  CHECK(!same_bits(own({x})[0], a[0]));  // the next draw
  CHECK(has(message<NotSupported>([] {
              saved(
                  [](const Tensors&) {
                    return Tensors{rand({2}, DType::Float32, Generator(1)),
                                   rand({2}, DType::Float32, Generator(2))};
                  },
                  {});
            }),
            "two generators"));
}

TEST_CASE("saved programs: inside a compiled function, with gradients and draws before") {
  nn::Sequential net(nn::Linear(3, 2));
  const Code f = of_one([&](const Tensor& x) { return dropout(tanh(net(x)), 0.5); });
  const SavedProgram program = saved(f, {zeros({4, 3})}, {.batched = {0}});
  const Tensor x = randn({4, 3}).compute();
  const auto with = [&](const Code& inner) {
    return compile([inner](const Tensors& in) {
      const Tensor noise = rand(in[0].shape()), y = inner({in[0] + noise})[0];
      return Tensors{y, grad(sum(square(y)), in[0])};
    });
  };
  manual_seed(2);
  const Outputs got = with([&](const Tensors& in) { return Tensors(program(in)); })({x});
  manual_seed(2);
  const Outputs wanted = with(f)({x});
  CHECK(same_bits(got[0], wanted[0]));
  CHECK(same_bits(got[1], wanted[1]));
}

TEST_CASE("saved programs: loops and branches with captured weights and draws") {
  const Tensor w = variable(randn({3, 3}), "w");
  const Code f = [&](const Tensors& in) {
    const ScanResult loop = scan(
        [&](const Tensors& carry, const Tensors& rows) {
          const Tensor next = tanh(matmul(carry[0], w) + rows[0] + rand(carry[0].shape()));
          return ScanResult{{next}, {sum(next, {-1})}};
        },
        {in[0]}, {in[1]});
    const Tensor loss = sum(loop.carry[0]);
    const Tensors chosen = cond(
        gt(loss, 0.0), [&](const Tensors& x) { return Tensors{x[0] * sum(w)}; },
        [](const Tensors& x) { return Tensors{-x[0]}; }, {loop.carry[0]});
    return Tensors{loop.ys[0], chosen[0], grad(loss, w)};
  };
  const Tensors in{randn({2, 3}).compute(), randn({5, 2, 3}).compute()};
  const SavedProgram program = saved(f, in);
  manual_seed(4);
  const Outputs got = program(in);
  manual_seed(4);
  const Outputs wanted = compile(f)(in);
  for (std::size_t k = 0; k < got.size(); ++k) CHECK(same_bits(got[k], wanted[k]));
}

TEST_CASE("saved programs: a function with a gradient of its own gives values, and no gradient") {
  const Function straight(
      "straight", [](FunctionContext&, const Tensor& x) { return round(x); },
      [](const FunctionContext&, const Tensor& g) { return g; });
  const SavedProgram program =
      saved(of_one([&](const Tensor& x) { return straight(x) * 2.0; }), {zeros({2})});
  CHECK(program({Tensor::from({1.4f, 2.6f}, {2})})[0].to_vector<float>() ==
        std::vector<float>{2, 6});
  CHECK(has(message<ValueError>([&] {
              compile([&](const Tensors& in) { return Tensors{grad(sum(program(in)[0]), in[0])}; })(
                  {ones({2})});
            }),
            "gradient of its own"));
}

TEST_CASE("saved programs: constants of every kind keep their bits") {
  const double inf = std::numeric_limits<double>::infinity();
  const Code f = of_one([&](const Tensor& x) {
    return where(gt(x, 0.0), full(x.shape(), -inf, DType::Float64),
                 full(x.shape(), -0.0, DType::Float64) * 0x1.123456789abcdp-300) +
           full(x.shape(), 1e-320, DType::Float64) * inf;
  });
  const Tensor x = Tensor::from({1.0, -1.0, 0.0}, {3});
  CHECK(same_bits(saved(f, {x})({x})[0], compile(f)({x})[0]));
}

TEST_CASE("saved programs: inputs that a program does not take") {
  const SavedProgram program = saved([](const Tensors& in) { return Tensors{in[0] + in[1]}; },
                                     {zeros({2, 3}), zeros({2, 3})}, {.batched = {0, 1}});
  CHECK(has(message<ValueError>([&] { program({ones({2, 3})}); }), "takes 2 inputs, not 1"));
  CHECK(has(message<ShapeError>([&] {
              program({ones({2, 3}), ones({4, 3})});
            }),
            "input 1 is [4, 3], must be [2, 3]"));
  CHECK(has(message<ShapeError>([&] { program({ones({2, 4}), ones({2, 4})}); }), "input 0"));
  CHECK(has(message<DTypeError>([&] {
              program({ones({2, 3}, DType::Float64), ones({2, 3}, DType::Float64)});
            }),
            "must be float32"));
  CHECK(has(message<ValueError>([] { SavedProgram()({}); }), "before it was loaded"));
}

TEST_CASE("saved programs: what cannot be saved") {
  const Tensor x = zeros({4, 3});
  const auto refused = [&](const Code& f, const SaveProgramOptions& options = {}) {
    std::string text = message<Error>([&] { saved(f, {x}, options); });
    CAPTURE(text);
    CHECK(!text.empty());
    return text;
  };
  CHECK(has(refused(of_one([](const Tensor& t) {
              return host_call("mine", {t}, TensorType{t.dtype(), t.shape()},
                               [](std::span<const HostInput>, std::span<const HostOutput>) {});
            })),
            "mine runs code that a file cannot hold"));
  CHECK(has(refused([](const Tensors&) { return Tensors{Tensor()}; }), "result 0"));
  CHECK(has(refused(of_one([](const Tensor& t) { return t; }), {.batched = {1}}),
            "batched input 1 is outside"));
  CHECK(has(refused(of_one([](const Tensor& t) { return t; }), {.metadata = {{"tenon.x", ""}}}),
            "reserved"));
  CHECK(has(refused(of_one([](const Tensor& t) {
                      return t + Tensor::from(
                                     std::vector<float>(static_cast<std::size_t>(t.size(0)), 1.f),
                                     {t.size(0), 1});
                    }),
                    {.batched = {0}}),
            "from the batch size"));
  CHECK(has(refused(of_one([](const Tensor& t) { return slice(t, 0, 0, (t.size(0) + 1) / 2); }),
                    {.batched = {0}}),
            "depends on the batch size"));
  CHECK(has(refused(of_one([](const Tensor& t) {
                      Tensor y = t;
                      for (std::int64_t k = 0; k < t.size(0); ++k) y = sin(y);
                      return y;
                    }),
                    {.batched = {0}}),
            "nodes has another length"));
  {
    const ShapesOnly shapes;
    nn::Linear empty(3, 2);
    CHECK(has(refused(of_one([&](const Tensor& t) { return empty(t); })), "has no memory"));
  }
}

TEST_CASE("saved programs: numbers that depend on the batch size") {
  using io::Json;
  CHECK(whole_at(Json("n"), 7) == 7);
  CHECK(whole_at(Json("-n"), 7) == -7);
  CHECK(whole_at(Json("4n-1"), 7) == 27);
  CHECK(whole_at(Json("-2n+3"), 7) == -11);
  CHECK(whole_at(Json(12), 7) == 12);
  for (const char* wrong : {"", "m", "4", "n+", "n*2", "4n-1n", "--n", "n+-1"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(whole_at(Json(wrong), 7), Json::exception);
  }
  CHECK(real_at(Json("1/4n"), 3) == 1.0 / 12);
  CHECK(real_at(Json("4n/4n-1"), 3) == 12.0 / 11);
  CHECK(real_at(Json("3n"), 3) == 9);
  CHECK(std::isnan(real_at(Json("nan"), 3)));
  for (const char* wrong : {"1/", "/n", "2/n", "n/n/n", "infinity"})
    CHECK_THROWS_AS(real_at(Json(wrong), 7), Json::exception);
  CHECK_THROWS_AS(whole_at(Json("99999999999999999999n"), 7), Json::out_of_range);
  CHECK_THROWS_AS(whole_at(Json("4611686018427387904n"), 7), Json::out_of_range);
}

namespace {

// A program with many kinds of attributes.
std::string file_of_many(const TestFolder& folder) {
  nn::Sequential net = small_network();
  const Tensor w = variable(randn({10, 10}), "w");
  const Code f = [&](const Tensors& in) {
    const Tensor y = net(in[0]);
    const ScanResult loop = scan(
        [&](const Tensors& carry, const Tensors&) {
          return ScanResult{{tanh(matmul(carry[0], w))}, {sum(carry[0])}};
        },
        {y}, {}, {.length = 3});
    return Tensors{permute(pad(loop.carry[0], {1, 2}, 0.5), {1, 0}),
                   sort(y).values,
                   digamma(abs(y)),
                   loop.ys[0],
                   rand({3}),
                   cumsum(y, 1),
                   fft::rfft(y).real};
  };
  save_program(folder / "many.tenon", f, {zeros({4, 1, 8, 8})}, {.batched = {0}});
  return io::read_file(folder / "many.tenon");
}

// Reads the bytes; returns whether they are a program.
bool is_program(const std::string& bytes) {
  try {
    (void)parse_program(bytes, "input");
    return true;
  } catch (const FormatError& error) {
    CHECK(has(error.what(), "input"));
  } catch (const NotSupported&) {
  }
  return false;
}

}  // namespace

TEST_CASE("saved programs: truncated and damaged files are refused") {
  const TestFolder folder;
  const std::string bytes = file_of_many(folder);
  REQUIRE(is_program(bytes));
  for (std::size_t cut = 0; cut < bytes.size(); cut += 1 + cut / 16)
    CHECK(!is_program(bytes.substr(0, cut)));
  std::size_t accepted = 0;
  std::mt19937 random(5);
  for (int k = 0; k < 400; ++k) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] ^= static_cast<char>(1u << random() % 8);
    accepted += is_program(damaged) ? 1 : 0;
  }
  CHECK(accepted <= 4);  // a flip of the checksum's own key leaves a file without checksums
  io::save_safetensors(folder / "plain.safetensors", {{"w", ones({2})}});
  CHECK(has(message<FormatError>([&] { load_program(folder / "plain.safetensors"); }),
            "is no saved program"));
}

TEST_CASE("saved programs: the graphs that the fuzzer starts with") {
  const io::TensorMap tensors{{"w", zeros({3, 2}).compute()}, {"k", zeros({4, 1, 3, 3}).compute()}};
  const auto graph = [](const std::string& name) {
    return io::read_file(std::string("tests/fuzz/corpus/program/") + name);
  };
  for (const char* name : {"product", "image", "loop", "empty"}) {
    CAPTURE(std::string(name));
    CHECK_NOTHROW(program_of_graph(graph(name), tensors, name));
  }
  // Engines count axes from 0.
  const std::string negative = R"({"format": 1, "inputs": [0], "results": [2], "nodes": [
    {"input": 0, "dtype": "float32", "shape": [2, 3]},
    {"op": "iota", "dtype": "int64", "shape": [2, 3], "attributes": {"axis": 1}},
    {"op": "gather", "inputs": [0, 1], "dtype": "float32", "shape": [2, 3],
     "attributes": {"axis": -1}}]})";
  CHECK(has(message<FormatError>([&] { program_of_graph(negative, {}, "negative"); }),
            "node 2 (gather): gather: axis -1"));
  CHECK_THROWS_AS(program_of_graph(graph("newer"), tensors, "newer"), NotSupported);
  CHECK_THROWS_AS(program_of_graph(graph("number"), tensors, "number"), FormatError);
}

TEST_CASE("saved programs: a hostile graph is refused with its node, or it runs") {
  const TestFolder folder;
  (void)file_of_many(folder);
  const io::SafeTensors good = io::load_safetensors(folder / "many.tenon");
  const std::string graph = good.metadata.at("tenon.program");
  std::vector<std::size_t> digits;
  for (std::size_t k = 0; k < graph.size(); ++k)
    if (graph[k] >= '0' && graph[k] <= '9') digits.push_back(k);
  std::mt19937 random(9);
  int refused = 0, ran = 0;
  const Tensor x = ones({3, 1, 8, 8});
  for (int k = 0; k < 300; ++k) {
    std::string changed = graph;
    changed[digits[random() % digits.size()]] = static_cast<char>('0' + random() % 10);
    if (k % 3 == 0) changed.insert(digits[random() % digits.size()], k % 2 == 0 ? "7" : "-");
    io::save_safetensors(folder / "changed.tenon", good.tensors, {{"tenon.program", changed}});
    try {
      const SavedProgram program = load_program(folder / "changed.tenon");
      if (program.inputs().size() == 1 && program.inputs()[0].shape.rank() == 4) (void)program({x});
      ++ran;
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 50);
  CHECK(ran > 20);
  const auto with = [&](const char* from, const char* to) {
    std::string changed = graph;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, std::strlen(from), to);
    io::save_safetensors(folder / "changed.tenon", good.tensors, {{"tenon.program", changed}});
    return message<Error>([&] { load_program(folder / "changed.tenon"); });
  };
  CHECK(has(with("\"conv2d\"", "\"conv9d\""), "(conv9d): this version does not know"));
  CHECK(has(with("\"stride_h\":1", "\"stride_h\":0"), "(conv2d): conv2d"));
  CHECK(has(with("\"stride_h\":1,", ""), "no key 'stride_h'"));
  CHECK(has(with("\"format\":1", "\"format\":2"), "use a newer version"));
}

// The plans of large networks for a described GPU, as summaries, compared with the recorded ones: a
// refactor shows here what it changed. No GPU is needed.
//
// A summary lists each kind of step once, with the number of such steps, and ends with a checksum
// of the whole plan. When a plan is meant to change: ./dev replay. When only the checksum changes,
// the order of the steps or the addresses did; ./dev replay FOLDER writes the whole plans.
#include <doctest/doctest.h>

#include <tenon/grad.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/ops.h>
#include <tenon/optim.h>
#include <tenon/precision.h>
#include <tenon/shapes_only.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/str.h"
#include "described_gpu.h"
#include "graph/node.h"
#include "graph/order.h"
#include "recorded.h"
#include "run/rounded.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Network {
  const char* name;
  std::int64_t batch;
};
const Network kNetworks[] = {{"resnet50", 64}, {"vgg16_bn", 32},    {"gpt2", 16},
                             {"lstm", 128},    {"transformer", 64}, {"lenet5", 64}};

Shape with_batch(const Shape& sample, std::int64_t batch) {
  Shape shape({batch});
  for (const std::int64_t size : sample) shape.push_back(size);
  return shape;
}

Tensor labels(const Shape& shape) { return without_memory(shape, DType::Int64); }

/// The loss and the update of the network's recipe.
std::vector<Tensor> training_step(const nn::AnyModule& net, const models::Info& info,
                                  const Tensor& x) {
  const models::Recipe& recipe = info.recipe;
  optim::OptimizerOptions options{.lr = recipe.lr, .weight_decay = recipe.weight_decay};
  if (recipe.optimizer == "sgd") options.momentum = recipe.momentum;
  const auto optimizer = optim::create(recipe.optimizer, net, options);
  const Tensor scores = net(x);
  const std::int64_t rows = scores.numel() / scores.size(-1);
  const Tensor loss =
      cross_entropy(info.tokens ? flatten(scores, 0, 1) : scores, labels(Shape({rows})));
  std::vector<Tensor> grads = grad(loss, optimizer->parameters());
  if (recipe.clip_norm > 0) grads = optim::clip_grad_norm(grads, recipe.clip_norm).grads;
  std::vector<Tensor> roots = optimizer->updates(grads);
  roots.insert(roots.begin(), loss);
  return roots;
}

std::shared_ptr<const Program> plan(const Network& network, Precision precision, bool trains) {
  const PrecisionScope scope(precision);
  const ShapesOnly nothing_is_computed;
  const models::Info info = models::info(network.name);
  nn::AnyModule net = models::create(network.name);
  const Shape input = with_batch(info.input, network.batch);
  const Tensor x = info.takes_tokens() ? labels(input) : without_memory(input, DType::Float32);
  std::vector<Tensor> roots;
  if (trains) {
    roots = training_step(net, info, x);
  } else {
    net.eval();
    roots = {precision == Precision::Bf16 ? cast(net(x), DType::BFloat16) : net(x)};
  }
  PlanOptions options = described_options();
  const KeptWeights kept = keep_rounded(roots, options);
  options.copies = kept.copies;
  std::vector<Node*> leaves;
  for (Node* node : topological_order(roots))
    if (node->realised()) leaves.push_back(node);
  for (const RoundedCopy& copy : kept.copies) leaves.push_back(copy.copy.node());
  return plan_program(roots, leaves, options);
}

/// The values of a line, equal ones once with their number: "3 var:float32[64] -> v:float32[]".
std::string counted(const std::string& line) {
  std::string text = "     ", value;
  std::vector<std::pair<std::string, int>> counts;
  const auto end_list = [&] {
    for (const auto& [name, count] : counts)
      text += count == 1 ? " " + name : cat(" ", count, " ", name);
    counts.clear();
  };
  for (const char letter : line) {
    if (letter != ' ' || !value.empty()) value += letter;
    if (value == "->") {
      end_list();
      text += " " + std::exchange(value, {});
    } else if (letter == ']') {
      const auto known = std::find_if(counts.begin(), counts.end(),
                                      [&](const auto& entry) { return entry.first == value; });
      if (known == counts.end())
        counts.emplace_back(value, 1);
      else
        ++known->second;
      value.clear();
    }
  }
  end_list();
  return text;
}

/// The line without the labels of layers and the numbers of steps and values.
std::string anonymous(const std::string& line) {
  const std::string words = line.substr(0, line.find("  # "));
  std::string text;
  for (std::size_t k = 0; k < words.size(); ++k) {
    const bool numbers = std::isdigit(static_cast<unsigned char>(words[k])) != 0;
    std::size_t end = k;
    while (end < words.size() && std::isdigit(static_cast<unsigned char>(words[end])) != 0) ++end;
    const bool names_value = numbers && end < words.size() && words[end] == ':' && k > 0 &&
                             std::isalpha(static_cast<unsigned char>(words[k - 1])) != 0;
    if (names_value)
      k = end - 1;
    else
      text += words[k];
  }
  return text;
}

/// Equal lines once, in order of appearance, with their number in front.
std::string each_once(const std::vector<std::string>& lines) {
  std::vector<std::string> order;
  std::map<std::string, int> count;
  for (const std::string& line : lines)
    if (count[line]++ == 0) order.push_back(line);
  std::string text;
  for (const std::string& line : order) text += cat(count[line], " x ", line, "\n");
  return text;
}

std::string checksum(const std::string& text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211u;
  std::string hex;
  for (int k = 60; k >= 0; k -= 4) hex += "0123456789abcdef"[hash >> k & 15];
  return hex;
}

/// A step of print_steps(): its head, what it reads and writes, and its parts.
struct PrintedStep {
  std::string head, values;
  std::vector<std::string> parts;

  std::string text() const {
    std::string all = head + "\n" + values;
    if (parts.empty()) return all;
    std::string inside = each_once(parts);
    for (std::size_t begin = 0; begin < inside.size();) {
      const std::size_t end = inside.find('\n', begin) + 1;
      all += "\n        " + inside.substr(begin, end - begin - 1);
      begin = end;
    }
    return all;
  }
};

std::string summary(const Program& program) {
  const std::string steps = print_steps(program);
  std::vector<PrintedStep> printed;
  for (const std::string& line : lines_of(steps)) {
    if (std::isdigit(static_cast<unsigned char>(line[0])) != 0) {
      const std::string words = anonymous(line);
      printed.push_back({words.substr(words.find_first_not_of("0123456789 ")), "", {}});
    } else if (printed.back().values.empty()) {
      printed.back().values = counted(anonymous(line));
    } else {
      const std::string words = anonymous(line);
      printed.back().parts.push_back(words.substr(words.find_first_not_of(' ')));
    }
  }
  std::vector<std::string> texts;
  for (const PrintedStep& step : printed) texts.push_back(step.text());
  return cat(each_once(texts), program.node_count, " nodes, ", program.steps.size(), " steps, ",
             program.arena_bytes, " bytes in the arena\n",
             "whole plan: ", checksum(steps + print_arena(program)), "\n");
}

}  // namespace

TEST_CASE("replay: the plans of large networks for a described GPU are the recorded ones") {
  const std::string whole = whole_texts_folder();
  for (const Network& network : kNetworks)
    for (const auto& [precision, word] :
         {std::pair(Precision::Fp32, "fp32"), std::pair(Precision::Bf16, "bf16")})
      for (const bool trains : {true, false}) {
        const std::string name = cat(network.name, trains ? "_train_" : "_infer_", word);
        CAPTURE(name);
        const auto program = plan(network, precision, trains);
        if (whole.empty())
          check_recorded("tests/replay/plans/gpu/" + name + ".txt", summary(*program));
        else
          io::write_file(cat(whole, "/gpu_", name, ".txt"),
                         print_graph(*program) + print_steps(*program) + print_arena(*program) +
                             print_fusion(*program));
      }
}

TEST_CASE("replay: planning for a described GPU twice gives the same plan") {
  const Network small{"lenet5", 64};
  CHECK(print_steps(*plan(small, Precision::Bf16, true)) ==
        print_steps(*plan(small, Precision::Bf16, true)));
}

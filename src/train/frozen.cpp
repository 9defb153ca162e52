// The end of the frozen parts, found in the graph, and sets of what they give.
#include "train/frozen.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>

#include <tenon/context.h>
#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/ops.h>
#include <tenon/weights.h>

#include "base/str.h"
#include "data/tensor_dataset.h"
#include "graph/body.h"
#include "graph/node.h"
#include "ops/attention.h"
#include "train/batches.h"
#include "train/resident.h"

namespace tenon::train {
namespace {

constexpr std::int64_t kMostKeptBytes = std::int64_t{4} << 30;  // that are kept in memory

// The part of a network at "layer1.0", or none.
std::optional<nn::AnyModule> part_at(const nn::AnyModule& net, const std::string& path) {
  const std::string name = path.substr(0, path.find('.'));
  for (const auto& [child_name, child] : net.children())
    if (child_name == name)
      return name.size() == path.size() ? std::optional<nn::AnyModule>(child)
                                        : part_at(child, path.substr(name.size() + 1));
  return std::nullopt;
}

// Where the frozen part of a graph ends.
struct EndOfFrozen {
  Tensor value;
  std::size_t nodes = 0;  // that it takes to compute it
};

std::optional<EndOfFrozen> end_of_frozen(const Tensor& output, const Tensor& input,
                                         const std::vector<Tensor>& learning) {
  std::unordered_set<const Node*> live, of_input;
  for (const Tensor& p : learning) live.insert(p.node());
  of_input.insert(input.node());
  std::vector<Node*> ends;
  for (Node* node : topological_order(std::vector<Tensor>{output})) {
    bool learns = node->op == Op::Random || drops_weights(*node);
    for (const Node* in : node->in()) {
      learns = learns || live.contains(in);
      if (of_input.contains(in)) of_input.insert(node);
    }
    if (!learns) continue;
    live.insert(node);
    for (Node* in : node->in())
      if (!live.contains(in) && of_input.contains(in) &&
          std::find(ends.begin(), ends.end(), in) == ends.end())
        ends.push_back(in);
  }
  if (ends.size() != 1 || ends[0] == input.node()) return std::nullopt;
  const Tensor value(ends[0]);
  return EndOfFrozen{value, topological_order(std::vector<Tensor>{value}).size()};
}

class FrozenNet : public nn::Module {
 public:
  FrozenNet(const nn::AnyModule& net, const std::vector<std::string>& parts) : net_(net) {
    for (const std::string& path : parts) {
      net.freeze(path);  // an unknown name is refused here
      if (std::optional<nn::AnyModule> part = part_at(net, path)) parts_.push_back(*part);
    }
    for (const auto& [name, part] : net.children()) child(name, part);
    if (named_parameters().size() != net.named_parameters().size())
      throw NotSupported(cat("freeze: ", net.describe(),
                             " has parameters of its own beside its parts': freeze parts with "
                             "Module::freeze() and a Trainer of your own"));
  }

  Tensor forward(const Tensor& x) const override {
    rest();
    if (!input_) return net_(x);
    const Tensor example = zeros(with_count(x.size(0), *input_));
    const Tensor output = net_(example);
    const std::optional<EndOfFrozen> end = end_of_frozen(output, example, trainable_parameters());
    if (!end) throw InternalError("freeze: the frozen part has no end any more");
    return substitute(std::vector<Tensor>{output}, {{end->value.node(), x}})[0];
  }
  std::string describe() const override { return net_.describe(); }

  // What the frozen parts give of a batch, when it has one value for each example, the same in
  // training and evaluation.
  std::optional<Tensor> kept(const Tensor& batch) const {
    const std::vector<Tensor> learning = trainable_parameters();
    std::optional<EndOfFrozen> ends[2];
    for (const bool training : {false, true}) {
      train(training);
      rest();
      ends[training ? 1 : 0] = end_of_frozen(net_(batch), batch, learning);
    }
    const auto& [evaluated, trained] = ends;
    if (!evaluated || !trained || evaluated->nodes != trained->nodes) return std::nullopt;
    const Tensor &a = evaluated->value, &b = trained->value;
    const bool same = a.node()->op == b.node()->op && a.shape() == b.shape();
    const bool for_each = b.rank() > 0 && b.size(0) == batch.size(0) && is_floating(b.dtype());
    return same && for_each ? std::optional<Tensor>(b) : std::nullopt;
  }
  nn::AnyModule behind(const Shape& input) const {
    FrozenNet out = *this;
    out.input_ = input;
    return out;
  }

 private:
  void rest() const {
    for (const nn::AnyModule& part : parts_) part.train(false);
  }

  nn::AnyModule net_;
  std::vector<nn::AnyModule> parts_;
  std::optional<Shape> input_;  // of an example whose frozen part is what forward() takes
};

struct KeptValues {
  std::vector<float> numbers;
  std::vector<std::int64_t> targets;
  Shape shape;  // of one
};

std::shared_ptr<const data::Dataset> kept_set(CompiledFunction& part, const data::Loader& loader) {
  data::LoaderOptions o = loader.options();
  o.shuffle = o.drop_last = false;
  const data::Dataset& set = loader.dataset();
  // The set outlives this call.
  data::Loader examples({std::shared_ptr<void>(), &set}, o);
  KeptValues values;
  for (data::Batch batch; examples.next(batch);) {
    if (!leave_out_absent(batch, set)) continue;
    const Tensor input = set.views() > 1 ? views_as_examples(batch.input).eval() : batch.input;
    const Tensor given = cast(part({input})[0], DType::Float32).eval();
    values.shape = {};
    if (set.views() > 1) values.shape.push_back(set.views());
    for (int axis = 1; axis < given.rank(); ++axis) values.shape.push_back(given.size(axis));
    const std::vector<float> numbers = given.to_vector<float>();
    values.numbers.insert(values.numbers.end(), numbers.begin(), numbers.end());
    const std::vector<std::int64_t> targets = batch.target.to_vector<std::int64_t>();
    values.targets.insert(values.targets.end(), targets.begin(), targets.end());
  }
  data::TensorDatasetParts parts;
  const std::int64_t count = std::ssize(values.targets);
  parts.input = Tensor::from_data(values.numbers.data(), with_count(count, values.shape),
                                  DType::Float32, Device());
  parts.target = Tensor::from_data(values.targets.data(), {count}, DType::Int64, Device());
  parts.views = set.views();
  parts.classes = set.classes();
  parts.class_names = set.class_names();
  parts.description = set.describe();
  return data::make_tensor_dataset(std::move(parts));
}

// " (Hugging Face GPT-2: 148 renamed, …)"
std::string in_words(const io::WeightFit& fit) {
  std::string out;
  for (const std::string& deed : fit.done) out += cat(out.empty() ? "" : ", ", deed);
  if (fit.family.empty()) return out.empty() ? out : cat(" (", out, ")");
  return cat(" (", fit.family, out.empty() ? "" : ": ", out, ")");
}

}  // namespace

std::string take_fitting_weights(const nn::AnyModule& net, const std::string& file) {
  const StateDict own = net.state_dict();
  const io::WeightFit fit = io::fit_weights(io::WeightFile(file), own);
  if (fit.tensors.empty())
    throw ValueError(cat(file, ": nothing in it fits the network: ", fit.differences()));
  net.load_state_dict(fit.tensors, false);
  const std::string left = fit.differences();
  return cat("weights: ", fit.tensors.size(), " of ", own.size(), " tensors are from ", file,
             in_words(fit), left.empty() ? "" : cat("; ", left));
}

TakenWeights take_all_weights(const nn::AnyModule& net, const std::string& file) {
  const io::WeightFit fit = io::fit_weights(io::WeightFile(file), net.state_dict());
  if (const std::string left = fit.differences(); !left.empty())
    throw ValueError(cat(file, fit.family.empty() ? "" : cat(" (", fit.family, ")"),
                         " does not fit ", net.describe(), ": ", left));
  net.load_state_dict(fit.tensors, false);
  return {cat("weights: all ", fit.tensors.size(), " tensors are from ", file, in_words(fit)),
          fit.normalize};
}

std::vector<std::string> parse_parts(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    out.push_back(text.substr(at, end - at));
    if (out.back().empty())
      throw ValueError(cat("setting 'freeze' is '", text,
                           "', must be names with commas between, as in 'features,fc.0'"));
    at = end + 1;
  }
  return out;
}

nn::AnyModule with_frozen(const nn::AnyModule& net, const std::vector<std::string>& parts) {
  return FrozenNet(net, parts);
}

KeptPart keep_frozen_part(const nn::AnyModule& net, const data::Loader& train,
                          const data::Loader* test) {
  const auto* frozen = net.as<FrozenNet>();
  KeptPart out;
  const data::Dataset& set = train.dataset();
  if (frozen == nullptr || set.target_dtype() != DType::Int64 || set.target_shape().rank() != 0) {
    out.how = "the frozen part is computed in every step: its targets are no classes";
    return out;
  }
  if (train.options().augment.any() || set.drawn_anew()) {
    out.how = "the frozen part is computed in every step: the augmentation changes its input";
    return out;
  }
  // The run's random numbers depend on none that are drawn here.
  Context context = current_context();
  context.generator = std::make_shared<Generator>(0);
  const ContextScope scope(context);
  const Tensor two = zeros(with_count(2, train.input_shape()), train.input_dtype());
  const std::optional<Tensor> one = frozen->kept(two);
  if (!one) {
    out.how = "the frozen part is computed in every step: more than one value of it is read";
    return out;
  }
  const std::int64_t tested =
      test != nullptr ? test->dataset().size() * test->dataset().views() : 0;
  const std::int64_t examples = set.size() + tested,
                     bytes = one->numel() / 2 * examples * std::int64_t{4};
  if (bytes > kMostKeptBytes) {
    out.how =
        cat("the frozen part is computed in every step: kept, it would take ", bytes >> 20, " MiB");
    return out;
  }
  CompiledFunction part = compile([frozen](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{*frozen->kept(in[0])};
  });
  out.train = kept_set(part, train);
  if (test != nullptr) out.test = kept_set(part, *test);
  out.net = frozen->behind(train.input_shape());
  out.how = cat("the frozen part is computed once: of ", examples, " examples ", bytes >> 20,
                " MiB are kept in memory");
  return out;
}

}  // namespace tenon::train

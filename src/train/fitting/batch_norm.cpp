// Recomputes the running statistics of batch normalization layers from data.
#include <algorithm>
#include <utility>

#include <tenon/compute.h>
#include <tenon/ops.h>
#include <tenon/trainer.h>

#include "graph/context.h"
#include "train/batches/batches.h"
#include "train/batches/kept_modes.h"

namespace tenon::train {
namespace {

const nn::BatchNorm* batch_norm_of(const nn::ModuleBase& module) {
  if (const auto* any = dynamic_cast<const nn::AnyModule*>(&module))
    return any->as<nn::BatchNorm>();
  return dynamic_cast<const nn::BatchNorm*>(&module);
}

// A layer with running statistics, and the sums over its calls.
struct Layer {
  nn::BatchNorm layer;
  Tensor mean{}, var{};
  std::int64_t calls = 0;
};

void find_layers(const nn::AnyModule& module, std::vector<Layer>& found) {
  const nn::BatchNorm* layer = batch_norm_of(module);
  const auto is_this = [&](const Layer& known) {
    return known.layer.running_mean().node() == layer->running_mean().node();
  };
  if (layer != nullptr && layer->running_mean().defined() &&
      std::none_of(found.begin(), found.end(), is_this))
    found.push_back({*layer});
  for (const auto& [name, child] : module.children()) find_layers(child, found);
}

// The sums of all layers over one batch: means and unbiased variances, float64.
std::vector<Tensor> sums_of_batch(nn::AnyModule net, const Tensor& input,
                                  std::vector<Layer> layers) {
  const nn::CallObserver watch([&](const std::string&, const nn::ModuleBase& module,
                                   std::span<const Tensor> inputs, std::span<const Tensor>) {
    const nn::BatchNorm* called = batch_norm_of(module);
    if (called == nullptr) return;
    for (Layer& sums : layers) {
      if (sums.layer.running_mean().node() != called->running_mean().node()) continue;
      const Moments batch = batch_moments(cast(inputs[0], DType::Float64));
      const std::int64_t count = inputs[0].numel() / inputs[0].size(1);
      const Tensor var = batch.var * (static_cast<double>(count) / static_cast<double>(count - 1));
      sums.mean = sums.calls == 0 ? batch.mean : sums.mean + batch.mean;
      sums.var = sums.calls == 0 ? var : sums.var + var;
      ++sums.calls;
    }
  });
  net.train();
  (void)net(input);
  std::vector<Tensor> out;
  for (const Layer& sums : layers) {
    out.push_back(sums.calls == 0 ? zeros_like(cast(sums.layer.running_mean(), DType::Float64))
                                  : sums.mean);
    out.push_back(sums.calls == 0 ? out.back() : sums.var);
    out.push_back(scalar(static_cast<double>(sums.calls), DType::Float64));
  }
  (void)take_updates(out);  // discard the updates of running statistics by momentum
  return out;
}

}  // namespace

void update_batch_norm(const nn::AnyModule& net, data::Loader& loader) {
  std::vector<Layer> layers;
  find_layers(net, layers);
  if (layers.empty()) return;
  const KeptModes modes(net);
  Context context = current_context();
  context.generator = Generator(0);
  const ContextScope scope(context);
  const data::LoaderState position = loader.state();
  loader.set_epoch(position.epoch);
  const data::Dataset& set = loader.dataset();
  CompiledFunction sums = compile([&](const std::vector<Tensor>& in) {
    return sums_of_batch(net, set.views() > 1 ? views_as_examples(in[0]) : in[0], layers);
  });
  std::vector<Tensor> totals;
  Batches batches(loader);
  for (data::Batch batch; batches.next(batch);) {
    if (!leave_out_absent(batch, set)) continue;
    std::vector<Tensor> of_batch = sums({batch.input});
    for (std::size_t k = 0; k < totals.size(); ++k) of_batch[k] = of_batch[k] + totals[k];
    compute(of_batch);
    totals = std::move(of_batch);
  }
  loader.set_state(position);
  for (std::size_t k = 0; 3 * k < totals.size(); ++k) {
    const nn::BatchNorm& layer = layers[k].layer;
    const Tensor& calls = totals[3 * k + 2];
    if (calls.item() == 0) continue;
    const auto set_mean = [&](const Tensor& running, const Tensor& total) {
      set_value(running, cast(total / calls, running.dtype()));
    };
    set_mean(layer.running_mean(), totals[3 * k]);
    set_mean(layer.running_var(), totals[3 * k + 1]);
    const Tensor tracked = layer.state_dict().at("num_batches_tracked");
    set_value(tracked, cast(calls, tracked.dtype()));
  }
}

}  // namespace tenon::train

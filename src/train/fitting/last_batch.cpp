// The check builds the forward pass for a batch of one sample and discards it.
#include "train/fitting/last_batch.h"

#include <algorithm>
#include <memory>
#include <string>

#include <tenon/context.h>
#include <tenon/error.h>
#include <tenon/generator.h>
#include <tenon/shapes_only.h>

#include "base/str.h"
#include "train/batches/kept_modes.h"
#include "train/batches/resident.h"

namespace tenon::train {
namespace {

// The error of the network for a training batch of this many samples; "" if there is none.
std::string refusal(nn::AnyModule net, const data::Loader& train, std::int64_t samples) {
  const KeptModes modes(net);
  Context context = current_context();  // so that draws here do not change the run's random numbers
  context.generator = Generator(0);
  const ContextScope scope(context);
  const ShapesOnly shapes;
  net.train();
  try {
    (void)net(without_memory(with_count(samples, train.input_shape()), train.input_dtype(),
                             current_device()));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

void require_trains_on_last_batch(const nn::AnyModule& net, const data::Loader& train) {
  const std::int64_t samples = train.epoch_size(), batch = train.batch(),
                     last = train.options().drop_last || samples % batch == 0 ? batch
                                                                              : samples % batch;
  if (last != 1 || !net.takes_one_tensor()) return;
  const std::string why = refusal(net, train, 1);
  if (why.empty() || !refusal(net, train, 2).empty()) return;
  if (batch == 1)
    throw ValueError(
        cat("Trainer: the batch size is 1, and the network cannot be trained on one sample: ", why,
            ". Use a larger batch size"));
  throw ValueError(cat("Trainer: the last batch of an epoch has one sample, for ", samples,
                       " samples make ", samples / batch, " batches of ", batch,
                       " and one more, and the network cannot be trained on one sample: ", why,
                       ". Drop the last batch (drop_last), or choose another batch size"));
}

}  // namespace tenon::train

// The loader: order of the epoch, batches of it, the place where it stands.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <tenon/data.h>
#include <tenon/error.h>

#include "base/index.h"
#include "base/str.h"
#include "data/augment.h"
#include "data/order.h"
#include "data/prefetch.h"
#include "data/scale.h"
#include "device/buffer.h"
#include "graph/node.h"

namespace tenon::data {
namespace {

void check(const LoaderOptions& o) {
  const auto refuse = [](const char* name, auto value, const char* range) {
    throw ValueError(cat("Loader: ", name, " is ", value, "; it must be ", range));
  };
  if (o.batch < 1 || o.batch > (1 << 24)) refuse("batch", o.batch, "1 to 16777216");
  if (o.workers < 0 || o.workers > 256) refuse("workers", o.workers, "0 to 256");
  if (o.prefetch < 1 || o.prefetch > 4096) refuse("prefetch", o.prefetch, "1 to 4096");
  if (!std::isfinite(o.mean)) refuse("mean", o.mean, "finite");
  if (!(std::isfinite(o.std) && o.std > 0)) refuse("std", o.std, "finite and above 0");
  constexpr std::int64_t kMost = 4096;
  if (o.augment.crop < 0 || o.augment.crop > kMost) refuse("crop", o.augment.crop, "0 to 4096");
  if (o.augment.cutout < 0 || o.augment.cutout > kMost)
    refuse("cutout", o.augment.cutout, "0 to 4096");
}

// A shift by more than a picture, or a square larger than it, would leave nothing to learn from.
void check_fits(const Augmentation& how, const Shape& picture) {
  const std::int64_t side = std::min(picture[1], picture[2]);
  const auto refuse = [&](const char* name, std::int64_t value) {
    throw ValueError(cat("Loader: ", name, "=", value, " is more than pictures of ", picture[1],
                         " x ", picture[2], " have: at most ", side));
  };
  if (how.crop > side) refuse("crop", how.crop);
  if (how.cutout > side) refuse("cutout", how.cutout);
}

void check_channels(const LoaderOptions& o, const Shape& picture) {
  if (o.channel_mean.empty() && o.channel_std.empty()) return;
  if (o.channel_mean.size() != o.channel_std.size() || picture.rank() != 3 ||
      picture[0] != static_cast<std::int64_t>(o.channel_mean.size()))
    throw ValueError(cat("Loader: ", o.channel_mean.size(), " means and ", o.channel_std.size(),
                         " deviations of channels do not fit examples of ", picture));
  for (const double std : o.channel_std)
    if (!(std::isfinite(std) && std > 0))
      throw ValueError(
          cat("Loader: a channel's deviation is ", std, "; it must be finite and above 0"));
}

}  // namespace

struct Loader::Impl {
  Impl(std::shared_ptr<const Dataset> set, const LoaderOptions& o)
      : dataset(std::move(set)), options(o) {
    if (!dataset) throw ValueError("Loader: there is no dataset");
    check(options);
    const std::int64_t size = dataset->size();
    if (size < 1) throw ValueError(cat("Loader: ", dataset->describe(), " is empty"));
    usable = options.drop_last ? size / options.batch * options.batch : size;
    if (usable == 0)
      throw ValueError(
          cat("Loader: a batch of ", options.batch, " is larger than the set of ", size,
              ", and drop_last leaves out what is incomplete: make the batch smaller"));
    options.batch = std::min(options.batch, size);
    if (options.augment.any() &&
        (dataset->input_shape().rank() != 3 || dataset->input_dtype() != DType::UInt8))
      throw ValueError(cat("Loader: ", dataset->describe(), " has examples of ",
                           dataset->input_dtype(), " ", dataset->input_shape(),
                           ": only pictures of bytes, uint8 [channels, height, width], can be "
                           "cropped, mirrored and cut out"));
    if (options.augment.any()) check_fits(options.augment, dataset->input_shape());
    check_channels(options, dataset->input_shape());
    input_numel = dataset->input_shape().numel();
    scaled = options.scale && dataset->input_dtype() == DType::UInt8;
    stored_bytes = static_cast<std::size_t>(input_numel) * item_size(dataset->input_dtype());
    input_bytes = static_cast<std::size_t>(input_numel) * item_size(input_dtype());
    target_bytes = static_cast<std::size_t>(dataset->target_shape().numel()) *
                   item_size(dataset->target_dtype());
    state.seed = options.seed;
  }

  DType input_dtype() const { return scaled ? DType::Float32 : dataset->input_dtype(); }

  void prepare_order() {
    if (!order.empty()) return;
    const std::int64_t size = dataset->size();
    if (options.shuffle) {
      order = epoch_order(state.seed, state.epoch, size);
    } else {
      order.resize(static_cast<std::size_t>(size));
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    }
  }

  void change(std::span<const std::int64_t> indices, std::uint8_t* pictures) const {
    if (!options.augment.any()) return;
    const double mean = std::clamp(options.mean, 0.0, 1.0);
    augment(options.augment, state.seed, state.epoch, indices, dataset->input_shape(),
            static_cast<std::uint8_t>(std::lround(255 * mean)), pictures);
  }

  void fill(std::int64_t first, std::int64_t count, void* input, void* target,
            std::vector<std::uint8_t>& stored) const {
    const std::span<const std::int64_t> indices(order.data() + first,
                                                static_cast<std::size_t>(count));
    if (!scaled) {
      dataset->get_drawn(indices, state.seed, state.epoch, input, target);
      change(indices, static_cast<std::uint8_t*>(input));
      return;
    }
    const std::size_t bytes = stored_bytes * static_cast<std::size_t>(count);
    if (stored.size() < bytes) stored.resize(bytes);
    dataset->get_drawn(indices, state.seed, state.epoch, stored.data(), target);
    change(indices, stored.data());
    scale_all(stored.data(), count, static_cast<float*>(input));
  }

  void scale_all(const std::uint8_t* from, std::int64_t count, float* out) const {
    const auto scale = [](const std::uint8_t* in, std::int64_t numbers, double mean, double std,
                          float* to) {
      scale_bytes(in, numbers, static_cast<float>(1.0 / (255.0 * std)),
                  static_cast<float>(-mean / std), to);
    };
    if (options.channel_mean.empty())
      return scale(from, input_numel * count, options.mean, options.std, out);
    const auto channels = static_cast<std::int64_t>(options.channel_mean.size()),
               plane = input_numel / channels;
    for (std::int64_t k = 0; k < count * channels; ++k) {
      const std::size_t c = at(k % channels);
      scale(from + k * plane, plane, options.channel_mean[c], options.channel_std[c],
            out + k * plane);
    }
  }

  std::int64_t next(void* input, void* target) {
    if (state.position >= usable) {
      move_to({state.seed, state.epoch + 1, 0});
      return 0;
    }
    prepare_order();
    const std::int64_t count = std::min(options.batch, usable - state.position);
    // A set may have come into memory during the last epoch, but an epoch begun with threads goes
    // on with them.
    const bool at_hand = dataset->in_memory() && !options.augment.any();
    if (!prefetcher && (options.workers == 0 || at_hand)) {
      fill(state.position, count, input, target, scratch);
    } else {
      take(count, input, target);
    }
    state.position += count;
    return count;
  }

  std::vector<std::int64_t> next_numbers() {
    if (state.position >= usable) {
      move_to({state.seed, state.epoch + 1, 0});
      return {};
    }
    prepare_order();
    prefetcher.reset();  // it counts batches by itself
    const std::int64_t count = std::min(options.batch, usable - state.position);
    const auto first = order.begin() + state.position;
    state.position += count;
    return {first, first + count};
  }

  void take(std::int64_t count, void* input, void* target) {
    const auto n = static_cast<std::size_t>(count);
    try {
      if (!prefetcher) start_prefetcher();
      prefetcher->take(input, input_bytes * n, target, target_bytes * n);
    } catch (...) {
      prefetcher.reset();  // The next call tries the same batch again.
      throw;
    }
  }

  void start_prefetcher() {
    const std::int64_t first = state.position, batch = options.batch;
    const std::int64_t batches = (usable - first + batch - 1) / batch;
    const int workers = static_cast<int>(std::min<std::int64_t>(options.workers, batches));
    const int depth =
        static_cast<int>(std::min<std::int64_t>(std::max(options.prefetch, workers), batches));
    const auto n = static_cast<std::size_t>(batch);
    prefetcher = std::make_unique<Prefetcher>(
        batches, workers, depth, input_bytes * n, target_bytes * n,
        [this, first, batch](std::int64_t number, void* input, void* target) {
          thread_local std::vector<std::uint8_t> room;  // each worker's own
          const std::int64_t at = first + number * batch;
          fill(at, std::min(batch, usable - at), input, target, room);
        });
  }

  void move_to(const LoaderState& to) {
    prefetcher.reset();
    if (to.seed != state.seed || to.epoch != state.epoch) order.clear();
    state = to;
  }

  std::shared_ptr<const Dataset> dataset;
  LoaderOptions options;
  LoaderState state;
  std::int64_t usable = 0, input_numel = 0;
  std::size_t stored_bytes = 0, input_bytes = 0, target_bytes = 0;
  bool scaled = false;
  std::vector<std::int64_t> order;
  std::vector<std::uint8_t> scratch;
  std::unique_ptr<Prefetcher> prefetcher;  // last: its threads use what stands above
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(dataset), options)) {}
Loader::~Loader() = default;

std::int64_t Loader::next(void* input, void* target) { return impl_->next(input, target); }

std::vector<std::int64_t> Loader::next_numbers() { return impl_->next_numbers(); }

// The batch is written where the tensors will hold it: nothing is copied afterwards.
namespace {

std::shared_ptr<Buffer> on_default_device(const std::shared_ptr<Buffer>& host, const Shape& shape) {
  if (default_device() == host->device()) return host;
  std::shared_ptr<Buffer> copy;
  try {
    copy = Buffer::allocate(host->bytes(), default_device());
  } catch (const MemoryError& error) {
    throw MemoryError(cat(error.what(), " (it is for a batch of shape ", shape, ")"));
  }
  if (host->bytes() != 0) copy->copy_from(*host, host->bytes());
  return copy;
}

}  // namespace

bool Loader::next(Batch& batch) {
  Impl& m = *impl_;
  batch = {};
  const std::int64_t left = m.usable - m.state.position;
  const auto n = static_cast<std::size_t>(std::min(m.options.batch, left));
  const auto input = Buffer::allocate(m.input_bytes * n);
  const auto target = Buffer::allocate(m.target_bytes * n);
  const std::int64_t size = m.next(input->data(), target->data());
  if (size == 0) return false;
  const auto with_batch = [size](const Shape& shape) {
    Shape whole{size};
    for (std::int64_t extent : shape) whole.push_back(extent);
    return whole;
  };
  const Shape inputs = with_batch(input_shape()), targets = with_batch(m.dataset->target_shape());
  batch.input = make_data(on_default_device(input, inputs), inputs, input_dtype());
  batch.target = make_data(on_default_device(target, targets), targets, m.dataset->target_dtype());
  batch.size = size;
  return true;
}

const Dataset& Loader::dataset() const noexcept { return *impl_->dataset; }
const LoaderOptions& Loader::options() const noexcept { return impl_->options; }
std::int64_t Loader::batch() const noexcept { return impl_->options.batch; }
std::int64_t Loader::batches() const noexcept {
  return (impl_->usable + impl_->options.batch - 1) / impl_->options.batch;
}
Shape Loader::input_shape() const { return impl_->dataset->input_shape(); }
DType Loader::input_dtype() const { return impl_->input_dtype(); }
LoaderState Loader::state() const noexcept { return impl_->state; }

void Loader::set_state(const LoaderState& state) {
  if (state.epoch < 0 || state.position < 0 || state.position > impl_->usable)
    throw ValueError(cat("Loader: state with epoch ", state.epoch, " and position ", state.position,
                         " does not fit a set of ", impl_->usable,
                         " examples: it was saved with other data"));
  impl_->move_to(state);
}

void Loader::set_epoch(std::int64_t epoch) { set_state({impl_->state.seed, epoch, 0}); }

}  // namespace tenon::data

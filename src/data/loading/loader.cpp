// The data loader: sample order of the epoch, batches, and the current position.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>

#include <tenon/data.h>
#include <tenon/error.h>

#include "base/index.h"
#include "base/per_thread.h"
#include "base/str.h"
#include "base/system/option_ranges.h"
#include "data/loading/prefetch.h"
#include "data/pixels/augment.h"
#include "data/pixels/scale.h"
#include "data/samples/image_jobs.h"
#include "data/samples/order.h"
#include "data/samples/sample_pieces.h"
#include "data/samples/sampling.h"
#include "device/backend.h"
#include "device/buffer.h"
#include "graph/node.h"

namespace tenon::data {
namespace {

constexpr double kMostPixels = 4096;

constexpr OptionRange<LoaderOptions> kLoaderRanges[] = {
    {"batch", &LoaderOptions::batch, from_to(1, 1 << 24)},
    {"workers", &LoaderOptions::workers, from_to(0, kMostWorkers)},
    {"prefetch", &LoaderOptions::prefetch, from_to(1, 4096)},
    {"mean", &LoaderOptions::mean, any_finite()},
    {"std", &LoaderOptions::std, finite_above(0)},
};
constexpr OptionRange<Augmentation> kAugmentationRanges[] = {
    {"crop", &Augmentation::crop, from_to(0, kMostPixels)},
    {"cutout", &Augmentation::cutout, from_to(0, kMostPixels)},
};

void check(const LoaderOptions& o) {
  check_options("Loader", o, kLoaderRanges);
  check_options("Loader", o.augment, kAugmentationRanges);
  for (const double mean : o.channel_mean)
    require_range("Loader", "channel_mean", mean, any_finite());
  for (const double std : o.channel_std)
    require_range("Loader", "channel_std", std, finite_above(0));
}

// A crop offset or cutout square larger than the image would remove the whole image.
void check_fits(const Augmentation& how, const Shape& image) {
  const std::int64_t side = std::min(image[1], image[2]);
  const auto refuse = [&](const char* name, std::int64_t value) {
    throw ValueError(cat("Loader: ", name, "=", value, " is more than images of ", image[1], " x ",
                         image[2], " have: at most ", side));
  };
  if (how.crop > side) refuse("crop", how.crop);
  if (how.cutout > side) refuse("cutout", how.cutout);
}

void check_channels(const LoaderOptions& o, const Shape& image) {
  if (o.channel_mean.empty() && o.channel_std.empty()) return;
  // Rank 4: several views of each image.
  if (o.channel_mean.size() != o.channel_std.size() || image.rank() < 3 || image.rank() > 4 ||
      image[image.rank() - 3] != static_cast<std::int64_t>(o.channel_mean.size()))
    throw ValueError(cat("Loader: ", o.channel_mean.size(), " means and ", o.channel_std.size(),
                         " deviations of channels do not fit samples of ", image));
}

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

Shape with_batch(std::int64_t size, const Shape& shape) {
  Shape whole{size};
  for (std::int64_t extent : shape) whole.push_back(extent);
  return whole;
}

}  // namespace

// Host memory for batches that are prepared ahead, and device memory if batches are copied while
// the device works. Inputs that the device itself decodes have no host memory.
class BatchSlots {
 public:
  BatchSlots(int count, std::int64_t batch, std::size_t input_bytes, std::size_t target_bytes,
             Device to, bool made_there)
      : device(to),
        input_offset_(in_lines(target_bytes)),
        here_each_(input_offset_ + (made_there ? 0 : in_lines(input_bytes))),
        there_each_(input_offset_ + in_lines(input_bytes)) {
    if (to.kind != Device::Kind::Cpu)
      uploads = backend_of(to).make_uploads(count, here_each_, to.index);
    if (uploads)
      there_ = Buffer::allocate(there_each_ * at(count), to);
    else
      here_ = std::make_unique_for_overwrite<std::byte[]>(here_each_ * at(count));
    if (made_there) jobs.assign(at(count), std::vector<ImageJob>(at(batch)));
  }
  std::byte* target(int slot) {
    return uploads ? uploads->host(slot) : here_.get() + here_each_ * at(slot);
  }
  std::byte* input(int slot) { return target(slot) + input_offset_; }
  void make(int slot, std::size_t count, int height, int width) {
    uploads->make_images(slot, there(slot) + input_offset_, std::span(jobs[at(slot)]).first(count),
                         height, width);
  }
  void send(int slot) { uploads->send(slot, there(slot), here_each_); }
  std::shared_ptr<Buffer> sent_input(int slot, std::size_t bytes) const {
    return Buffer::window(there_, there_each_ * at(slot) + input_offset_, bytes);
  }
  std::shared_ptr<Buffer> sent_target(int slot, std::size_t bytes) const {
    return Buffer::window(there_, there_each_ * at(slot), bytes);
  }

  const Device device;
  std::vector<std::vector<ImageJob>> jobs;  // by slot; empty if the device decodes nothing

 private:
  // Arrays that a device reads are aligned to 256 bytes.
  static std::size_t in_lines(std::size_t bytes) {
    return at(round_up(static_cast<std::int64_t>(bytes), 256));
  }
  std::byte* there(int slot) {
    return static_cast<std::byte*>(there_->data()) + there_each_ * at(slot);
  }

  std::size_t input_offset_, here_each_, there_each_;
  std::unique_ptr<std::byte[]> here_;
  std::shared_ptr<Buffer> there_;

 public:
  std::unique_ptr<Uploads> uploads;  // declared last: destroyed before the memory that it writes
};

// Sample orders of the epochs in progress. Thread-safe.
class EpochOrders {
 public:
  using Order = std::shared_ptr<const EpochSamples>;
  EpochOrders(std::int64_t size, bool shuffle, const std::optional<WeightedDraws>& weighted)
      : size_(size), shuffle_(shuffle), weighted_(weighted) {}
  Order of(std::uint64_t seed, std::int64_t epoch) {
    const std::lock_guard lock(mutex_);
    if (seed != seed_) known_.clear();
    seed_ = seed;
    std::erase_if(known_, [epoch](const auto& one) { return one.first < epoch - 1; });
    Order& order = known_[epoch];
    if (order == nullptr) order = std::make_shared<const EpochSamples>(samples(seed, epoch));
    return order;
  }

 private:
  EpochSamples samples(std::uint64_t seed, std::int64_t epoch) const {
    if (weighted_) return weighted_->of(seed, epoch);
    if (shuffle_) return {epoch_order(seed, epoch, size_), {}};
    std::vector<std::int64_t> numbers(at(size_));
    std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
    return {std::move(numbers), {}};
  }

  const std::int64_t size_;
  const bool shuffle_;
  const std::optional<WeightedDraws>& weighted_;  // of the loader
  std::mutex mutex_;
  std::uint64_t seed_ = 0;
  std::map<std::int64_t, Order> known_;
};

// Samples of an epoch, one after another.
struct Examples {
  EpochOrders::Order order;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0, begin = 0, count = 0;
  std::span<const std::int64_t> numbers() const {
    return std::span(order->numbers).subspan(at(begin), at(count));
  }
  // The epoch number for the random numbers of sample k; differs each time a sample is drawn again
  // in one epoch.
  std::int64_t epoch_of(std::int64_t k) const {
    return order->repeats.empty()
               ? epoch
               : epoch + (std::int64_t{order->repeats[at(begin + k)]} << kRepeatShift);
  }
  static constexpr int kRepeatShift = 32;
  Examples part(std::int64_t from, std::int64_t to) const {
    return {order, seed, epoch, begin + from, to - from};
  }
};

struct Loader::Impl {
  Impl(std::shared_ptr<const Dataset> set, const LoaderOptions& o)
      : dataset(std::move(set)), options(o) {
    if (!dataset) throw ValueError("Loader: there is no dataset");
    check(options);
    if (dataset->size() < 1)
      throw ValueError(cat("Loader: there are no samples to load from ", dataset->describe()));
    epoch_size = dataset->size();
    if (options.sampling.any() || options.sampling.count != 0) {
      if (!options.shuffle)
        throw ValueError(
            "Loader: weighted sampling draws samples in random order, and shuffle is off: turn "
            "shuffle on, or leave out the weights");
      weighted.emplace(options.sampling, dataset->size());
      epoch_size = weighted->count();
    }
    orders = new_orders();
    const std::int64_t size = epoch_size;
    usable = options.drop_last ? size / options.batch * options.batch : size;
    if (usable == 0)
      throw ValueError(cat("Loader: a batch of ", options.batch, " is larger than the set of ",
                           size, ", and drop_last drops it: use a smaller batch size"));
    options.batch = std::min(options.batch, size);
    if (options.augment.any() &&
        (dataset->input_shape().rank() != 3 || dataset->input_dtype() != DType::UInt8))
      throw ValueError(cat("Loader: ", dataset->describe(), " has samples of ",
                           dataset->input_dtype(), " ", dataset->input_shape(),
                           ": only images of bytes, uint8 [channels, height, width], can be "
                           "cropped, mirrored and cut out"));
    if (options.augment.any()) check_fits(options.augment, dataset->input_shape());
    input_numel = dataset->input_shape().numel();
    scaled = options.scale && dataset->input_dtype() == DType::UInt8;
    if (scaled) check_channels(options, dataset->input_shape());
    stored_bytes = data::input_bytes(dataset->info());
    target_bytes = data::target_bytes(dataset->info());
    state.seed = options.seed;
  }

  DType input_dtype() const { return scaled ? DType::Float32 : dataset->input_dtype(); }
  DType given_dtype() const { return as_stored ? dataset->input_dtype() : input_dtype(); }
  std::size_t input_bytes() const { return at(input_numel) * item_size(given_dtype()); }

  // The batch that begins at this position.
  Examples batch_at(std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
    return {orders->of(seed, epoch), seed, epoch, position,
            std::min(options.batch, usable - position)};
  }
  Examples next_batch() { return batch_at(state.seed, state.epoch, state.position); }

  // Samples as the dataset stores them, with augmentation.
  void get(const Examples& examples, void* inputs, void* targets) const {
    if (!dataset->is_augmented() && !options.augment.any())
      return dataset->get(examples.numbers(), inputs, targets);
    auto *input = static_cast<std::byte*>(inputs), *target = static_cast<std::byte*>(targets);
    for (std::int64_t from = 0, to = 0; from < examples.count; from = to) {
      const std::int64_t epoch = examples.epoch_of(from);
      for (to = from + 1; to < examples.count && examples.epoch_of(to) == epoch;) ++to;
      get_augmented(examples.part(from, to).numbers(), examples.seed, epoch,
                    input + stored_bytes * at(from), target + target_bytes * at(from));
    }
  }

  void get_augmented(std::span<const std::int64_t> numbers, std::uint64_t seed, std::int64_t epoch,
                     std::byte* inputs, std::byte* targets) const {
    dataset->get_augmented(numbers, seed, epoch, inputs, targets);
    if (!options.augment.any()) return;
    const double mean = std::clamp(options.mean, 0.0, 1.0);
    augment(options.augment, seed, epoch, numbers, dataset->input_shape(),
            static_cast<std::uint8_t>(std::lround(255 * mean)),
            reinterpret_cast<std::uint8_t*>(inputs));
  }

  void fill(const Examples& examples, void* input, void* target,
            std::vector<std::uint8_t>& stored) const {
    if (!scaled || as_stored) return get(examples, input, target);
    const std::size_t bytes = stored_bytes * at(examples.count);
    if (stored.size() < bytes) stored.resize(bytes);
    get(examples, stored.data(), target);
    scale_all(stored.data(), examples.count, static_cast<float*>(input));
  }

  void scale_all(const std::uint8_t* from, std::int64_t count, float* out) const {
    using Numbers = std::span<const double>;
    const bool each = !options.channel_mean.empty();
    scale_samples(from, count, dataset->input_shape(),
                  each ? Numbers(options.channel_mean) : Numbers(&options.mean, 1),
                  each ? Numbers(options.channel_std) : Numbers(&options.std, 1), out);
  }

  // Samples of the next batch; 0 at the end of the epoch.
  std::int64_t begin_batch(bool stored) {
    begin_in_this_process();
    return_lent();
    const Device to = stored ? default_device() : Device();
    if (stored != as_stored || (slots && slots->device != to)) {
      prefetcher.reset();  // its threads read the members changed below
      slots.reset();
      as_stored = stored;
    }
    if (state.position >= usable) {
      move_to({state.seed, state.epoch + 1, 0});
      return 0;
    }
    return std::min(options.batch, usable - state.position);
  }

  // A dataset may have been cached in memory during the last epoch, but an epoch that began with
  // threads continues with them.
  bool has_threads() const {
    const bool ready = dataset->in_memory() && !options.augment.any();
    return prefetcher || !(options.workers == 0 || ready) || image_jobs() != nullptr;
  }

  // The dataset's images, if the default device decodes and transforms them itself; otherwise null.
  const ImageJobs* image_jobs() const {
    const Device to = default_device();
    if (!as_stored || to.kind == Device::Kind::Cpu || options.augment.any()) return nullptr;
    const auto* jobs = dataset->as<ImageJobs>();
    if (jobs == nullptr || !jobs->for_device()) return nullptr;
    const ImageDecoder decoder = backend_of(to).image_decoder(to.index);
    return decoder.changes && (decoder.found || !jobs->device_decodes()) ? jobs : nullptr;
  }

  // Writes the next batch to host memory.
  void give(std::int64_t count, void* input, void* target) {
    if (!has_threads()) return fill(next_batch(), input, target, scratch);
    const int slot = take();
    std::memcpy(input, slots->input(slot), input_bytes() * at(count));
    std::memcpy(target, slots->target(slot), target_bytes * at(count));
    prefetcher->give_back();
  }

  std::int64_t next(void* input, void* target) {
    const std::int64_t count = begin_batch(false);
    if (count > 0) give(count, input, target);
    state.position += count;
    return count;
  }

  bool next(Batch& batch, bool stored) {
    batch = {};
    const std::int64_t count = begin_batch(stored);
    if (count == 0) return false;
    const Shape inputs = with_batch(count, dataset->input_shape()),
                targets = with_batch(count, dataset->target_shape());
    const std::size_t of_inputs = input_bytes() * at(count), of_targets = target_bytes * at(count);
    std::shared_ptr<Buffer> input, target;
    if (stored && has_threads() && sends_slots()) {
      const int slot = take();
      slots->uploads->receive(slot);
      lent = slot;
      input = slots->sent_input(slot, of_inputs);
      target = slots->sent_target(slot, of_targets);
    } else {  // written directly to the tensors' memory
      input = Buffer::allocate(of_inputs), target = Buffer::allocate(of_targets);
      give(count, input->data(), target->data());
      input = on_default_device(input, inputs), target = on_default_device(target, targets);
    }
    state.position += count;
    batch.input = make_data(input, inputs, given_dtype());
    batch.target = make_data(target, targets, dataset->target_dtype());
    batch.size = count;
    return true;
  }

  std::vector<std::int64_t> next_numbers() {
    if (state.position >= usable) {
      move_to({state.seed, state.epoch + 1, 0});
      return {};
    }
    begin_in_this_process();
    drop_prefetcher();  // it counts batches independently
    const Examples examples = next_batch();
    state.position += examples.count;
    return {examples.numbers().begin(), examples.numbers().end()};
  }

  // Waits for the next batch and returns its slot, which is the caller's until given back.
  int take() {
    try {
      if (!prefetcher) start_prefetcher();
      return prefetcher->take();
    } catch (...) {
      prefetcher.reset();  // The next call tries the same batch again.
      throw;
    }
  }

  bool sends_slots() {
    if (!slots) make_slots();
    return slots->uploads != nullptr;
  }

  void make_slots() {
    depth = static_cast<int>(std::min<std::int64_t>(options.prefetch, batches()));
    slots.emplace(depth, options.batch, input_bytes() * at(options.batch),
                  target_bytes * at(options.batch), as_stored ? default_device() : Device(),
                  image_jobs() != nullptr);
  }

  void start_prefetcher() {
    if (!slots) make_slots();
    const int workers = std::max(options.workers, 1),
              parts = static_cast<int>(std::min<std::int64_t>(workers, options.batch));
    const std::int64_t all = batches(), left = divide_up(usable - state.position, options.batch);
    // Batch `number` counted from the current position, in this epoch or a later one.
    const auto examples = [this, from = state, all, left](std::int64_t number) {
      const std::int64_t later = number - left;
      return later < 0
                 ? batch_at(from.seed, from.epoch, from.position + number * options.batch)
                 : batch_at(from.seed, from.epoch + 1 + later / all, later % all * options.batch);
    };
    const ImageJobs* const jobs = image_jobs();
    Prefetcher::Work work;
    work.fill = [this, examples, parts, jobs](std::int64_t number, int part, int slot) {
      static const PerThread<std::vector<std::uint8_t>> room_of_thread;  // one for each worker
      std::vector<std::uint8_t>& room = room_of_thread.get();
      if (slots->uploads) slots->uploads->await(slot);
      const Examples whole = examples(number);
      const std::int64_t from = whole.count * part / parts, to = whole.count * (part + 1) / parts;
      if (from == to) return;
      if (jobs != nullptr) return fill_jobs(*jobs, whole, from, to, slot, false);
      fill(whole.part(from, to), slots->input(slot) + input_bytes() * at(from),
           slots->target(slot) + target_bytes * at(from), room);
    };
    if (slots->uploads)
      work.finish = [this, examples, jobs](std::int64_t number, int slot) {
        if (jobs != nullptr) make_images(*jobs, examples(number), slot);
        slots->send(slot);
      };
    constexpr std::int64_t kEndless = std::int64_t{1} << 40;
    prefetcher.reset(new Prefetcher(
        {prefetches_next_epoch() ? kEndless : left, workers, parts, depth}, std::move(work)));
  }

  std::int64_t batches() const { return divide_up(usable, options.batch); }

  // A loader that shuffles is used for training, epoch after epoch, so threads prepare the next
  // epoch while the last batches of this one are used. A dataset that is in memory by then needs no
  // threads.
  bool prefetches_next_epoch() const {
    return options.shuffle && (options.augment.any() || !dataset->in_memory());
  }

  void fill_jobs(const ImageJobs& jobs, const Examples& examples, std::int64_t from,
                 std::int64_t to, int slot, bool decoded) {
    auto* labels = reinterpret_cast<std::int64_t*>(slots->target(slot));
    for (std::int64_t k = from; k < to; ++k)
      slots->jobs[at(slot)][at(k)] = jobs.job(examples.numbers()[at(k)], examples.seed,
                                              examples.epoch_of(k), decoded, labels[k]);
  }

  // If the device's decoder refuses a file, the CPU decodes it or throws its error.
  void make_images(const ImageJobs& jobs, const Examples& examples, int slot) {
    const Shape shape = dataset->input_shape();
    const int height = static_cast<int>(shape[1]), width = static_cast<int>(shape[2]);
    try {
      slots->make(slot, at(examples.count), height, width);
    } catch (const FormatError&) {
      fill_jobs(jobs, examples, 0, examples.count, slot, true);
      slots->make(slot, at(examples.count), height, width);
    }
  }

  // After a fork the threads exist only in the parent and may hold locks. The child starts new
  // threads at the same batch and leaks the objects that the threads used.
  void begin_in_this_process() {
    if (process == ::getpid()) return;
    process = ::getpid();
    prefetcher.reset();
    static_cast<void>(orders.release());
    orders = new_orders();
    lent = -1;
  }

  // Releases the batch returned before; all work that reads it has been queued by now.
  void return_lent() {
    if (lent < 0) return;
    slots->uploads->release(lent);
    lent = -1;
    prefetcher->give_back();
  }

  void drop_prefetcher() {
    return_lent();
    prefetcher.reset();
  }

  void move_to(const LoaderState& to) {
    begin_in_this_process();
    const bool on = to == state ||
                    (state.position == usable && to == LoaderState{state.seed, state.epoch + 1, 0});
    if (on && prefetches_next_epoch())
      return_lent();
    else
      drop_prefetcher();
    state = to;
  }

  std::unique_ptr<EpochOrders> new_orders() const {
    return std::make_unique<EpochOrders>(dataset->size(), options.shuffle, weighted);
  }

  std::shared_ptr<const Dataset> dataset;
  LoaderOptions options;
  LoaderState state;
  std::optional<WeightedDraws> weighted;
  std::int64_t epoch_size = 0, usable = 0, input_numel = 0;
  std::size_t stored_bytes = 0, target_bytes = 0;
  bool scaled = false;
  bool as_stored = false;  // the current batches are not cast or scaled on the host
  pid_t process = ::getpid();
  std::unique_ptr<EpochOrders> orders;
  std::vector<std::uint8_t> scratch;
  std::optional<BatchSlots> slots;
  int depth = 0;  // slots
  int lent = -1;  // the slot that the caller reads; -1: none
  std::unique_ptr<Prefetcher, EndPrefetcher> prefetcher;  // last: its threads use the members above
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(dataset), options)) {}
Loader::~Loader() = default;

std::int64_t Loader::next(void* input, void* target) { return impl_->next(input, target); }

std::vector<std::int64_t> Loader::next_numbers() { return impl_->next_numbers(); }

bool Loader::next(Batch& batch) { return impl_->next(batch, false); }

bool Loader::next_stored(Batch& batch) { return impl_->next(batch, true); }

const Dataset& Loader::dataset() const noexcept { return *impl_->dataset; }
const LoaderOptions& Loader::options() const noexcept { return impl_->options; }
std::int64_t Loader::batch() const noexcept { return impl_->options.batch; }
std::int64_t Loader::batches() const noexcept {
  return (impl_->usable + impl_->options.batch - 1) / impl_->options.batch;
}
std::int64_t Loader::epoch_size() const noexcept { return impl_->epoch_size; }
Shape Loader::input_shape() const { return impl_->dataset->input_shape(); }
DType Loader::input_dtype() const { return impl_->input_dtype(); }
LoaderState Loader::state() const noexcept { return impl_->state; }

void Loader::set_state(const LoaderState& state) {
  if (state.epoch < 0 || state.position < 0 || state.position > impl_->usable)
    throw ValueError(cat("Loader: state with epoch ", state.epoch, " and position ", state.position,
                         " does not fit a set of ", impl_->usable,
                         " samples: it was saved with other data"));
  impl_->move_to(state);
}

void Loader::set_epoch(std::int64_t epoch) { set_state({impl_->state.seed, epoch, 0}); }

}  // namespace tenon::data

// The data loader: batches of a dataset, with shuffling or weighted sampling, prepared by threads,
// and the augmentation of training images in memory.
//
// The order of samples depends on (seed, epoch) alone. Neither the number of worker threads nor a
// stop and resume changes it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tenon/dataset.h>
#include <tenon/tensor.h>

namespace tenon::data {

/// Random augmentation of training images by a loader. The random numbers depend on (seed, epoch,
/// sample) alone, so they are the same for any number of workers and after a resume. Transforms
/// (<tenon/images.h>) can do more.
struct Augmentation {
  /// Random crop: pads the image with this many black pixels on each side and takes a random part
  /// of the original size (torchvision: RandomCrop with `padding`).
  std::int64_t crop = 0;
  bool flip = false;        ///< mirror left to right with probability 0.5 (RandomHorizontalFlip)
  std::int64_t cutout = 0;  ///< side of a square at a random position that is set to the mean
  /// Whether any augmentation is on.
  bool any() const { return crop > 0 || flip || cutout > 0; }
};

/// Mixup and CutMix of a training batch (torchvision: v2.MixUp and v2.CutMix). Each image is mixed
/// with the one before it in the batch, the first with the last. Labels become mixtures of two
/// classes. If both are on, one of the two is drawn for each batch, with equal probability.
struct Mixing {
  double mixup = 0;   ///< alpha: the image's own share is drawn from Beta(alpha, alpha); 0: off
  double cutmix = 0;  ///< alpha: the area that is not replaced is from Beta(alpha, alpha); 0: off
  /// Whether any of the two is on.
  bool any() const { return mixup > 0 || cutmix > 0; }
};
/// The random numbers of Mixing for one batch.
struct MixDraw {
  double pixels = 1;  ///< share of the image's own value in each pixel, outside the box if any
  double share = 1;   ///< weight of the image's own label; the other image's label has the rest
  int left = 0;       ///< first column of the box that shows the other image
  int top = 0;        ///< first row of the box
  int right = 0;      ///< column after the last column of the box
  int bottom = 0;     ///< row after the last row of the box
};
/// Draws the random numbers of one batch. They depend on the arguments alone. Throws ValueError if
/// neither mixup nor CutMix is on.
///
/// @param mixing  what is on
/// @param height  height of the images in pixels
/// @param width   width of the images in pixels
/// @param seed    the loader's seed
/// @param epoch   the epoch
/// @param batch   the batch's number in the epoch
TENON_API MixDraw draw_mix(const Mixing& mixing, int height, int width, std::uint64_t seed,
                           std::int64_t epoch, std::int64_t batch);
/// The draw of CutMix for a given share and a box with its centre at (x, y), clipped at the edges
/// of the image.
TENON_API MixDraw cut_mix(double share, int x, int y, int height, int width);

/// Weighted sampling: each epoch draws samples with probabilities in proportion to their weights
/// (PyTorch: WeightedRandomSampler). The draws depend on (seed, epoch) alone.
struct WeightedSampling {
  /// One weight for each sample, finite and not negative; a sample of weight 0 is never drawn.
  /// Empty: off, so an epoch has every sample once.
  std::vector<double> weights{};
  std::int64_t count = 0;   ///< samples in an epoch; 0: as many as the dataset has
  bool replacement = true;  ///< a sample can be drawn several times in an epoch
  /// Whether weighted sampling is on.
  TENON_API bool any() const;
};
/// Weights that draw every class equally often: 1 / (number of the class's samples). A sample whose
/// target is kIgnoredTarget has weight 0. Reads the labels of all samples; those of image files
/// without decoding. Throws ValueError unless each target is one class.
TENON_API std::vector<double> class_balanced_weights(const Dataset& dataset);

/// Options of Loader.
struct LoaderOptions {
  std::int64_t batch = 64;  ///< batch size
  bool shuffle = true;      ///< a new order of the samples in every epoch
  bool drop_last = false;   ///< leave out an incomplete last batch
  std::uint64_t seed = 0;   ///< seed of the order and of augmentation
  /// Threads that prepare batches ahead; 0: next() prepares them. A dataset in memory needs no
  /// threads and uses none, unless its images are augmented.
  int workers = 1;
  int prefetch = 4;  ///< batches that are prepared ahead
  /// True: uint8 inputs become float32, (x / 255 - mean) / std. Other inputs, and all inputs if
  /// false, keep their values and type.
  bool scale = true;
  double mean = 0;  ///< subtracted from scaled inputs
  double std = 1;   ///< scaled inputs are divided by it
  /// One mean for each channel of [C, H, W] or [views, C, H, W], replaces `mean`; empty: `mean`.
  std::vector<double> channel_mean{};
  /// One standard deviation for each channel, replaces `std`; empty: `std`.
  std::vector<double> channel_std{};
  Augmentation augment{};       ///< augmentation of uint8 inputs [C, H, W]
  WeightedSampling sampling{};  ///< samples drawn by weight; off by default
};

/// The position of a loader: enough to continue exactly there.
struct LoaderState {
  std::uint64_t seed = 0;     ///< LoaderOptions::seed
  std::int64_t epoch = 0;     ///< the epoch, from 0
  std::int64_t position = 0;  ///< samples of this epoch that were already returned
  /// Whether all members are equal.
  bool operator==(const LoaderState&) const = default;
};

/// A batch of samples.
struct Batch {
  Tensor input;           ///< inputs, [N, …]
  Tensor target;          ///< targets, [N, …]
  std::int64_t size = 0;  ///< N, the number of samples
};

/// Gives the samples of a dataset in batches, epoch after epoch (PyTorch: DataLoader). Only one
/// thread may use a loader.
class TENON_API Loader {
 public:
  /// Throws ValueError for an empty dataset or an option out of range, for weights that do not fit
  /// the dataset, and for weights without `shuffle`.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options = {});
  ~Loader();
  Loader(const Loader&) = delete;             ///< a loader is not copied
  Loader& operator=(const Loader&) = delete;  ///< a loader is not copied

  /// Writes the next batch to memory with room for batch() inputs and targets. Returns its number
  /// of samples; 0 at the end of the epoch, after which the next call begins the next epoch.
  /// Rethrows what the dataset throws in any thread.
  std::int64_t next(void* input, void* target);
  /// The next batch as tensors on the default device; false at the end of the epoch.
  bool next(Batch& batch);
  /// The same with inputs as the dataset stores them, whatever options().scale. A batch that worker
  /// threads prepare is copied to a GPU while the GPU computes, and stays valid until the next
  /// call.
  bool next_stored(Batch& batch);
  /// The indices of the next batch's samples, for callers that hold the dataset themselves. Empty
  /// at the end of the epoch.
  std::vector<std::int64_t> next_numbers();

  /// The dataset.
  const Dataset& dataset() const noexcept;
  /// The options that the constructor got.
  const LoaderOptions& options() const noexcept;
  /// Samples in a full batch.
  std::int64_t batch() const noexcept;
  /// Batches in an epoch.
  std::int64_t batches() const noexcept;
  /// Samples in an epoch: the dataset's size or WeightedSampling::count, before drop_last.
  std::int64_t epoch_size() const noexcept;
  /// Shape of one sample's input.
  Shape input_shape() const;
  /// Data type of the inputs that next() gives, after scaling.
  DType input_dtype() const;

  /// The current position, for set_state().
  LoaderState state() const noexcept;
  /// Continues from a position. Throws ValueError if it does not fit this dataset.
  void set_state(const LoaderState& state);
  /// Moves to the start of an epoch, from 0.
  void set_epoch(std::int64_t epoch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::data

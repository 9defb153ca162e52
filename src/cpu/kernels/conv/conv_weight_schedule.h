// The scheduler of weight gradients, and its interface to tile bodies.
//
// Images are cut into a fixed number of parts. Each part has its own sums, which are added in order
// at the end, so the number of threads does not change the bits. A part processes its images a
// stretch at a time: x is copied into planes once for all taps of a filter, dy once for each panel
// of output channels. A body only knows its tiles: how both are copied, and the layout of the sums.
#pragma once

#include "cpu/kernels/conv/conv_geometry.h"
#include "cpu/kernels/conv/conv_weight_grad.h"

namespace tenon::cpu {

PassAxis weight_rows(const ConvShape& shape);
PassAxis weight_cols(const ConvShape& shape);

/// How a pass is cut. A word of images is one image or, with pairs, two neighbouring ones.
struct ImageCut {
  std::int64_t channels = 0, outputs = 0;     // of one group
  std::int64_t panels = 0, panel_floats = 0;  // of output channels; a panel's sums
  std::int64_t images_per_word = 1, image_words = 0;
  Planes planes;
  std::int64_t band = 0;           // output rows of a stretch
  std::int64_t stretch_words = 1;  // words of images of a stretch; above 1 only for whole images
  std::int64_t parts = 0, words_per_part = 0;

  std::int64_t image_floats() const { return channels * planes.size(); }
  std::int64_t part_floats(std::int64_t groups) const;
};

/// Cuts rows so that the planes of a stretch have `plane_floats` floats, and counts words of
/// images.
void cut_bands(const ConvShape& shape, std::int64_t plane_floats, ImageCut& cut);
/// Completes the cut, after cut_bands: at most most_parts parts; several small images per stretch.
void cut_parts(const ConvShape& shape, std::int64_t plane_floats, std::int64_t most_parts,
               std::int64_t stretch_words, ImageCut& cut);

/// The input that is copied at once: some words of images of one group, or a band of rows of one
/// image.
struct Stretch {
  std::int64_t word = 0, words = 0;
  std::int64_t group = 0;
  std::int64_t row = 0, rows = 0;  // of outputs
};

/// A run of sums that one chunk finishes, and the rectangle of dw that the run becomes.
struct SumPiece {
  std::int64_t first = 0, count = 0;
  std::int64_t k0 = 0, k1 = 0, col0 = 0, col1 = 0;
};

class WeightBody {
 public:
  WeightBody(const ConvShape& shape, const KernelSet& kernels) : s_(shape), kernels_(kernels) {
    cut_.channels = shape.c / shape.groups;
    cut_.outputs = shape.k / shape.groups;
  }
  WeightBody(const WeightBody&) = delete;
  WeightBody& operator=(const WeightBody&) = delete;

  const ConvShape& shape() const { return s_; }
  const KernelSet& kernels() const { return kernels_; }
  const ImageCut& cut() const { return cut_; }

  virtual std::int64_t table_floats() const = 0;
  virtual void fill_table(std::int32_t* table) const = 0;
  virtual std::int64_t worker_floats() const = 0;
  virtual const float* copy_x(ConvOperand x, const Stretch& stretch, float* scratch) const = 0;
  /// Overwrites or adds to one panel's sums; `scratch` is the scratch that copy_x had.
  virtual void compute(ConvOperand dy, const Stretch& stretch, std::int64_t panel,
                       const float* planes, const std::int32_t* table, float* scratch, float* sums,
                       bool accumulate) const = 0;
  virtual std::int64_t pieces() const = 0;
  virtual SumPiece piece(std::int64_t index) const = 0;
  /// Converts the sums of all parts to dw. `block` is the rectangle's first element; its rows are
  /// `ld` apart.
  virtual void finish(const SumPiece& piece, float* sums, float* block, std::int64_t ld) const = 0;

 protected:
  ~WeightBody() = default;

  /// Elements of one output channel's filter, the row of dw.
  std::int64_t row_length() const { return cut_.channels * s_.r * s_.s; }

  const ConvShape& s_;
  const KernelSet& kernels_;
  ImageCut cut_;
};

/// Without dw its rectangles exist only for the epilogue, in scratch.
void weights_with(const WeightBody& body, ConvOperand x, ConvOperand dy, float* dw,
                  const Epilogue& epilogue, void* workspace);
std::size_t weights_with_workspace(const WeightBody& body, int threads);

}  // namespace tenon::cpu

// The scheduler of forward convolutions and input gradients, and its interface to tile bodies.
//
// The scheduler cuts a pass into units (a band of output rows of one image and group) and packs the
// filters once. For every unit it has planes copied and the tiles of each stride phase computed,
// and calls the epilogue. A body only knows its tiles: what a reduction step is, how filters are
// packed for it, and the layout of planes. Cuts follow from shapes, so the number of threads does
// not change the bits.
#pragma once

#include "cpu/kernels/conv/conv_geometry.h"
#include "device/cpu_model.h"

namespace tenon::cpu {

/// How a pass is cut. A chunk is a run of units; a thread takes one chunk at a time.
struct UnitCut {
  std::int64_t words = 0;        // of input channels: channels, or pairs of them
  std::int64_t steps = 0;        // of all phases together
  std::int64_t panels = 0;       // of output channels
  std::int64_t step_floats = 0;  // of one panel's packed filters in one step
  Planes planes;
  std::int64_t band = 0, bands = 0;  // rows of the longest phase
  std::int64_t units = 0, units_per_chunk = 1;
  std::int64_t unit_pixels = 0;  // of one output channel, at most

  std::int64_t table_floats() const;
  std::int64_t filter_floats() const;  // of one group
};

/// Limits on how a body's work is cut.
struct UnitLimits {
  double chunk_work;  // least multiply-adds of a chunk
  double band_work;   // least multiply-adds of a band, if images are cut to occupy the threads
  std::int64_t plane_floats;  // most floats of copied planes in a unit, if rows can be cut
  std::int64_t result_floats = kCpu.second_floats() / 2;  // most floats of results in scratch
};

/// Fills in everything after step_floats; row_work is the work of one output row.
void cut_units(const Correlation& pass, double row_work, const UnitLimits& limits, UnitCut& cut);

/// One stride phase of a pass: its axes, its part of the table and of a group's packed filters.
struct Phase {
  Axis rows, cols;
  std::int64_t steps = 0;
  std::int32_t* table = nullptr;  // [step]
  float* filters = nullptr;       // [panel][step][step_floats]
  std::int64_t pitch = 0;         // floats from an output channel's plane to the next one's

  /// The position among the phase's taps of a tap of the whole filter; row -1 if it belongs to
  /// another phase.
  struct Tap {
    std::int64_t row, col;
  };
  Tap tap(std::int64_t of_filter, std::int64_t filter_cols) const;
};

/// Calls f(rows, cols) with the axes of each stride phase.
template <class F>
void each_phase(const Correlation& pass, F f) {
  for (int a = 0; a < pass.rows.phases(); ++a) {
    for (int b = 0; b < pass.cols.phases(); ++b) f(pass.rows.axis(a), pass.cols.axis(b));
  }
}

class TileBody {
 public:
  TileBody(const Correlation& pass, const KernelSet& kernels) : pass_(pass), kernels_(kernels) {}
  TileBody(const TileBody&) = delete;
  TileBody& operator=(const TileBody&) = delete;

  const Correlation& pass() const { return pass_; }
  const UnitCut& cut() const { return cut_; }

  virtual std::int64_t steps(const Axis& rows, const Axis& cols) const = 0;
  /// Scratch of one worker: copied planes and the tiles' own needs.
  virtual std::int64_t worker_floats() const = 0;
  virtual void fill_table(const Phase& phase) const = 0;
  virtual void pack_filters(const Phase& phase, ConvOperand w, std::int64_t group,
                            std::int64_t panel) const = 0;
  /// Copies the planes of one image and group (`image` counts both) for the band from out_row0 on.
  virtual const float* copy_planes(ConvOperand in, std::int64_t image, std::int64_t out_row0,
                                   float* scratch) const = 0;
  /// Computes outputs [row0, row0 + rows) of a phase. `out` is the start of the first output
  /// channel's plane, which may contain only the unit's rows.
  virtual void compute(const Phase& phase, const float* planes, float* scratch, std::int64_t row0,
                       std::int64_t rows, float* out) const = 0;

 protected:
  ~TileBody() = default;

  /// dst[element * width + line] in float32; `at` is the first element of the first line.
  void transpose_filters(ConvOperand w, std::int64_t at, int lines, std::int64_t count, int width,
                         float* dst) const;

  const Correlation& pass_;
  const KernelSet& kernels_;
  UnitCut cut_;
};

void correlate_with(const TileBody& body, ConvOperand in, ConvOperand w, float* out,
                    const Epilogue& epilogue, void* workspace);
std::size_t correlate_with_workspace(const TileBody& body, int threads);

}  // namespace tenon::cpu

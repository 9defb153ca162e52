// Units, chunks, phases and the epilogue of a correlation, for every kind of tile.
#include "cpu/kernels/conv/conv_schedule.h"

#include <algorithm>

#include "base/index.h"
#include "base/thread_pool.h"
#include "device/cpu_model.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kManyChunks = 2 * kCpu.many_chunks;
// Fewer filter floats are packed by the calling thread alone.
constexpr std::int64_t kFewFloats = kCpu.second_floats() / 16;

std::int64_t worker_floats(const TileBody& body) {
  const std::int64_t result = body.pass().out_channels * body.cut().unit_pixels;
  return body.worker_floats() + (body.pass().in_scratch ? round_up(result, 16) : 0);
}

class Scheduler {
 public:
  Scheduler(const TileBody& body, void* workspace)
      : body_(body), pass_(body.pass()), cut_(body.cut()) {
    table_ = static_cast<std::int32_t*>(workspace);
    filters_ = static_cast<float*>(workspace) + cut_.table_floats();
    scratch_ = filters_ + pass_.groups * cut_.filter_floats();
    each_placed(0, [this](const Phase& phase) { has_gaps_ = has_gaps_ || phase.steps == 0; });
  }

  void prepare(ConvOperand w) const {
    each_placed(0, [&](const Phase& phase) { body_.fill_table(phase); });
    const std::int64_t lines = pass_.groups * cut_.panels;
    const auto pack = [&](std::int64_t line, int) {
      const std::int64_t group = line / cut_.panels, panel = line % cut_.panels;
      each_placed(group, [&](const Phase& phase) { body_.pack_filters(phase, w, group, panel); });
    };
    if (lines * cut_.steps * cut_.step_floats < kFewFloats) {
      for (std::int64_t line = 0; line < lines; ++line) pack(line, 0);
    } else {
      parallel_for(lines, pack);
    }
  }

  void run(ConvOperand in, float* out, const Epilogue& epilogue) const {
    parallel_for(divide_up(cut_.units, cut_.units_per_chunk), [&](std::int64_t chunk, int worker) {
      const std::int64_t end = std::min(cut_.units, (chunk + 1) * cut_.units_per_chunk);
      for (std::int64_t unit = chunk * cut_.units_per_chunk; unit < end; ++unit)
        run_unit(in, out, epilogue, unit, worker);
    });
  }

 private:
  // This order of phases is the layout of the table and of a group's packed filters.
  template <class F>
  void each_placed(std::int64_t group, F f) const {
    std::int32_t* table = table_;
    float* filters = filters_ + group * cut_.filter_floats();
    each_phase(pass_, [&](const Axis& rows, const Axis& cols) {
      const Phase phase{rows, cols, body_.steps(rows, cols), table, filters, pitch()};
      f(phase);
      table += phase.steps;
      filters += phase.steps * cut_.panels * cut_.step_floats;
    });
  }

  std::int64_t pitch() const {
    return pass_.in_scratch ? cut_.unit_pixels : pass_.out_h * pass_.out_w;
  }

  void run_unit(ConvOperand in, float* out, const Epilogue& epilogue, std::int64_t unit,
                int worker) const {
    const std::int64_t band = unit % cut_.bands, group = unit / cut_.bands % pass_.groups;
    const std::int64_t image = unit / cut_.bands / pass_.groups;
    const std::int64_t row0 = band * cut_.band,
                       row1 = std::min(pass_.rows.longest(), row0 + cut_.band);
    float* const scratch = scratch_ + worker * worker_floats(body_);
    const float* const planes = body_.copy_planes(in, image * pass_.groups + group, row0, scratch);
    const std::int64_t step = pass_.rows.axis(0).out_step;
    const std::int64_t first = row0 * step * pass_.out_w;
    const std::int64_t last = std::min(pass_.out_h, row1 * step) * pass_.out_w;
    float* const result = pass_.in_scratch
                              ? scratch + body_.worker_floats() - first
                              : out + (image * pass_.groups + group) * pass_.out_channels * pitch();
    // Pixels that no tap reaches (three of four input pixels of a 1 x 1 filter with stride 2)
    // become zero.
    for (std::int64_t channel = 0; has_gaps_ && channel < pass_.out_channels; ++channel)
      std::fill_n(result + channel * pitch() + first, last - first, 0.0f);
    each_placed(group, [&](const Phase& phase) {
      const std::int64_t rows = std::min(row1, phase.rows.out_count) - row0;
      if (rows > 0 && phase.cols.out_count > 0 && phase.steps > 0)
        body_.compute(phase, planes, scratch, row0, rows, result);
    });
    if (epilogue.fn == nullptr) return;
    const Rectangle place = {image, group * pass_.out_channels, (group + 1) * pass_.out_channels,
                             first, last};
    epilogue.fn(epilogue.ctx, {worker, place, result + first, pitch()});
  }

  const TileBody& body_;
  const Correlation& pass_;
  const UnitCut& cut_;
  std::int32_t* table_;
  float* filters_;
  float* scratch_;
  bool has_gaps_ = false;
};

}  // namespace

std::int64_t UnitCut::table_floats() const { return round_up(steps, 16); }

std::int64_t UnitCut::filter_floats() const { return round_up(steps * panels * step_floats, 16); }

Phase::Tap Phase::tap(std::int64_t of_filter, std::int64_t filter_cols) const {
  const std::int64_t r = of_filter / filter_cols - rows.first,
                     s = of_filter % filter_cols - cols.first;
  if (r < 0 || s < 0 || r % rows.step != 0 || s % cols.step != 0) return {-1, -1};
  if (r / rows.step >= rows.count || s / cols.step >= cols.count) return {-1, -1};
  return {r / rows.step, s / cols.step};
}

void TileBody::transpose_filters(ConvOperand w, std::int64_t at, int lines, std::int64_t count,
                                 int width, float* dst) const {
  const void* rows[kMaxNr];
  for (int line = 0; line < lines; ++line)
    rows[line] = element(w.data, w.dtype, at + line * pass_.filter_out_stride);
  kernels_.pack_transposed({rows, lines, w.dtype}, count, Math::F32, dst, width);
}

void cut_units(const Correlation& pass, double row_work, const UnitLimits& limits, UnitCut& cut) {
  const std::int64_t rows = pass.rows.longest();
  std::int64_t bands = std::min(rows, divide_up(kManyChunks, pass.images * pass.groups));
  while (bands > 1 &&
         static_cast<double>(rows) / static_cast<double>(bands) * row_work < limits.band_work)
    --bands;
  const std::int64_t row_pixels = pass.rows.axis(0).out_step * pass.out_w;
  const std::int64_t row_floats = row_pixels * pass.out_channels;
  const auto too_large = [&](std::int64_t count) {
    const std::int64_t band = divide_up(rows, count);
    const bool result = pass.in_scratch && band * row_floats > limits.result_floats;
    return band > 4 && (result || cut.words * planes_for(pass.rows, pass.cols, band).size() >
                                      limits.plane_floats);
  };
  while (too_large(bands)) bands = std::min(rows, bands + 1);
  cut.band = divide_up(rows, bands);
  cut.bands = divide_up(rows, cut.band);
  cut.planes = planes_for(pass.rows, pass.cols, cut.band);
  cut.unit_pixels = cut.band * row_pixels;
  cut.units = pass.images * pass.groups * cut.bands;
  const double unit_work = static_cast<double>(cut.band) * row_work;
  cut.units_per_chunk =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(limits.chunk_work / unit_work), 1,
                               std::max<std::int64_t>(1, cut.units / kManyChunks));
}

void correlate_with(const TileBody& body, ConvOperand in, ConvOperand w, float* out,
                    const Epilogue& epilogue, void* workspace) {
  const Scheduler scheduler(body, workspace);
  scheduler.prepare(w);
  scheduler.run(in, out, epilogue);
}

std::size_t correlate_with_workspace(const TileBody& body, int threads) {
  const UnitCut& cut = body.cut();
  const std::int64_t floats =
      cut.table_floats() + body.pass().groups * cut.filter_floats() + threads * worker_floats(body);
  return static_cast<std::size_t>(floats) * sizeof(float);
}

}  // namespace tenon::cpu

// The tuner's bench on a GPU.
//
// The reference is the first engine that has a reference configuration: the contraction's defining
// sums, with operands rounded as requested, run once on the tuning inputs. Values that a region
// both reads and writes (weights that it updates) are filled again before every check. They and
// single numbers are positive: an update takes roots of some and divides by others, and results
// near zero would dominate the comparison.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include <tenon/error.h>

#include "base/str.h"
#include "device/buffer.h"
#include "run/devices.h"
#include "run/tuning/tune.h"

namespace tenon {
namespace {

constexpr std::size_t kAlignment = 256;

/// The allowed distance between a result and the reference, relative to the reference's norm.
/// Float32 sums in another order differ by about the square root of their length, in units of 6e-8.
/// TF32 would differ by 4e-4.
double bound_of(const Contraction& c, DType result) {
  double bound = c.dtype == DType::Float64 ? 1e-12 : 5e-5;
  if (c.tf32() || result == DType::Float16) bound = 2e-3;
  if (c.compute() == DType::Float16 || c.compute() == DType::BFloat16)
    bound = std::max(bound, 1e-3);
  if (result == DType::BFloat16) bound = 1e-2;
  if (!is_floating(result)) bound = 0.03;  // comparisons of sums that are nearly equal
  return bound;
}

/// The part that the reference can run: without reductions of neighbouring rows, whose order
/// belongs to each engine.
Region without_sums_of_rows(const Region& region) {
  Region rest = region;
  std::erase_if(rest.map.reduces, [&rest](const MapReduce& reduce) {
    return reduce.rows > 0 && std::erase(rest.writes, reduce.value) > 0;
  });
  return rest;
}

class GpuBench final : public Bench {
 public:
  GpuBench(const Region& region, std::span<const Value> values, const PlanOptions& options,
           std::span<const Candidate> candidates)
      : region_(region),
        compared_(without_sums_of_rows(region)),
        values_(values),
        device_(options.device),
        backend_(backend_for(device_)),
        pointers_(values.size()) {
    const double terms = multiply_adds(region.contraction) /
                         static_cast<double>(region.contraction.out_shape.numel());
    spread_ = 3 / std::sqrt(std::max(terms, 1.0));  // results are about 1
    for (const ValueId id : region.reads) place(id);
    for (const ValueId id : region.writes) place(id);
    const std::unique_ptr<Kernel> reference = make_reference(options);
    std::size_t workspace = reference->workspace_bytes;
    for (const Candidate& c : candidates)
      workspace = std::max(workspace, c.kernel->workspace_bytes);
    workspace_ = Buffer::allocate(workspace + kAlignment, device_);
    run(*reference);
    for (const ValueId id : compared_.writes) {
      expected_[id] = Buffer::allocate(value(id).bytes, device_);
      expected_[id]->copy_from(*live_[id], bytes(id));
    }
  }

  // Frees the memory, because the next region may need blocks of other sizes.
  ~GpuBench() override {
    live_.clear(), expected_.clear();
    workspace_.reset();
    backend_.memory()->trim(device_.index);
  }

  std::string title() const override { return region_.title; }

  bool agrees(const Kernel& kernel, std::string* why) override {
    run(kernel);
    for (const ValueId id : compared_.writes) {
      const Trials::Difference d =
          trials().difference(expected_[id]->data(), live_[id]->data(), value(id).dtype,
                              value(id).shape.numel(), device_.index);
      const double apart = std::sqrt(d.apart),
                   bound = bound_of(region_.contraction, value(id).dtype);
      if (d.broken == 0 && apart <= bound * std::sqrt(d.size)) continue;
      *why = cat("its result differs from the reference's by ", apart / std::sqrt(d.size),
                 " of the norm (", d.broken, " elements are not finite), more than ", bound);
      return false;
    }
    return true;
  }

  double microseconds(const Kernel& kernel) override {
    constexpr double kLong = 300;  // target length of one timing, in microseconds
    double& known = estimates_[&kernel];
    if (known == 0) {
      known = 1e3 * backend_.measure(kernel, binding(), device_.index, 1);
      if (known >= kLong) return known;
    }
    const auto repeats = static_cast<int>(std::clamp(kLong / std::max(known, 0.1), 1.0, 20.0));
    const double us = 1e3 * backend_.measure(kernel, binding(), device_.index, repeats);
    known = std::min(known, us);
    return us;
  }

 private:
  Trials& trials() const { return *backend_.trials(); }
  const Value& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  std::size_t bytes(ValueId id) const { return static_cast<std::size_t>(value(id).bytes); }

  void place(ValueId id) {
    std::shared_ptr<Buffer>& buffer = live_[id];
    if (buffer == nullptr) buffer = Buffer::allocate(bytes(id), device_);
    pointers_[static_cast<std::size_t>(id)] = static_cast<std::byte*>(buffer->data());
  }

  std::unique_ptr<Kernel> make_reference(const PlanOptions& options) const {
    for (const Engine* engine : options.engines) {
      std::string why;
      if (!runs(*engine, compared_, values_, &why)) continue;
      try {
        return engine->prepare_as(kReferenceConfiguration, compared_, values_, options.threads);
      } catch (const NotSupported&) {
        continue;
      }
    }
    throw NotSupported("no engine has a reference to compare with");
  }

  Binding binding() const {
    auto* workspace = static_cast<std::byte*>(workspace_->data());
    return {pointers_.data(), workspace, backend_.stream(device_.index)};
  }

  void run(const Kernel& kernel) {
    const int gpu = device_.index;
    for (const ValueId id : region_.writes) trials().poison(live_[id]->data(), bytes(id), gpu);
    for (const ValueId id : region_.reads)
      trials().fill_random(live_[id]->data(), value(id).dtype, value(id).shape.numel(),
                           static_cast<std::uint64_t>(id), scale_of(id), gpu);
    trials().poison(workspace_->data(), workspace_->bytes(), gpu);
    kernel.run(binding());
    backend_.synchronize();
  }

  double scale_of(ValueId id) const {
    if (id == region_.contraction.b.value) return spread_;
    const bool changes =
        std::find(region_.writes.begin(), region_.writes.end(), id) != region_.writes.end();
    return changes || value(id).shape.numel() == 1 ? -1.0 : 1.0;
  }

  const Region& region_;
  const Region compared_;
  const std::span<const Value> values_;
  const Device device_;
  Backend& backend_;
  double spread_ = 1;
  std::vector<std::byte*> pointers_;
  std::map<ValueId, std::shared_ptr<Buffer>> live_, expected_;
  std::shared_ptr<Buffer> workspace_;
  std::map<const Kernel*, double> estimates_;
};

}  // namespace

std::unique_ptr<Bench> make_gpu_bench(const Region& region, std::span<const Value> values,
                                      const PlanOptions& options,
                                      std::span<const Candidate> candidates) {
  return std::make_unique<GpuBench>(region, values, options, candidates);
}

}  // namespace tenon

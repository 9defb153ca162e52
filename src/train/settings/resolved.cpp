// Parses the settings of a run.
#include "train/settings/resolved.h"

#include <utility>

#include <tenon/error.h>

#include "base/str.h"
#include "train/adapting/frozen.h"
#include "train/settings/settings.h"

namespace tenon::train {
namespace {

// An option that the optimizer does not have is passed only if it asks for something, so that
// optim::create() refuses it.
optim::OptimizerOptions optimizer_options(const Settings& s) {
  const optim::OptimizerOptions has = optim::defaults(s.optimizer);
  optim::OptimizerOptions o;
  o.lr = s.lr;
  if (has.weight_decay || s.weight_decay != 0) o.weight_decay = s.weight_decay;
  if (has.nesterov || s.nesterov) o.nesterov = s.nesterov;
  if (has.momentum) o.momentum = s.momentum;
  if (has.beta2) o.beta2 = s.beta2;
  if (has.eps) o.eps = s.eps;
  return o;
}

optim::ScheduleOptions schedule_options(const Settings& s) {
  optim::ScheduleOptions o;
  o.warmup = s.warmup;
  o.every = s.step_epochs;
  Milestones milestones = parse_milestones(s.milestones);
  o.milestones = std::move(milestones.epochs);
  o.factors = std::move(milestones.factors);
  o.gamma = s.gamma;
  o.minimum = s.min_lr_factor;
  o.power = s.power;
  o.multiply = s.restart_multiply;
  return o;
}

KeepPlace keep_place(const std::string& name) {
  if (name == "memory") return KeepPlace::Memory;
  if (name == "disk") return KeepPlace::Disk;
  if (name == "off") return KeepPlace::Nowhere;
  if (name == "auto") return KeepPlace::Auto;
  throw ValueError(
      cat("setting 'keep_frozen' is '", name, "', must be one of auto, memory, disk, off"));
}

KeepOptions keep_options(const Settings& s) {
  constexpr double kGiB = 1073741824;
  KeepOptions o;
  o.place = keep_place(s.keep_frozen);
  o.limit = static_cast<std::int64_t>(s.frozen_cache * kGiB);
  o.variants = s.frozen_variants;
  return o;
}

}  // namespace

ResolvedModel::ResolvedModel(Settings&& given, std::optional<DataSource> source)
    : settings(std::move(given)),
      data(source ? std::move(*source) : DataSource(settings.data)),
      network(SettingsNetwork::keep(settings)),
      task(task_of(settings)),
      compute{precision_from_name(settings.precision),
              parse_layer_precision(settings.layer_precision), tune_from_name(settings.tune),
              settings.threads, static_cast<std::uint64_t>(settings.seed)},
      images(image_settings(settings, data, network.info())) {
  if (!settings.lora.empty()) lora = parse_lora(settings.lora);
}

void ResolvedModel::set_image_setting(const std::string& key, const std::string& value) {
  settings.set(key, value);
  images = image_settings(settings, data, info());
}

void ResolvedModel::set_precision(Precision precision) {
  settings.precision = name(precision);
  compute.precision = precision;
}

ResolvedRun::ResolvedRun(Settings&& given, std::optional<DataSource> source)
    : ResolvedModel(std::move(given), std::move(source)),
      augmentation(augmentation_of(settings, images, data, info())),
      optimizer{settings.optimizer, optimizer_options(settings), parse_rates(settings.rate_of)},
      schedule{settings.schedule, schedule_options(settings)},
      checkpoints{settings.keep_checkpoints, settings.checkpoint_steps,
                  settings.checkpoint_seconds},
      frozen{parse_parts(settings.freeze), settings.unfreeze_after, keep_options(settings)} {}

ResolvedRun ResolvedRun::released() const {
  ResolvedRun out = *this;
  out.settings.freeze.clear();
  out.settings.unfreeze_after = 0;
  out.frozen.layers.clear();
  out.frozen.until_epoch = 0;
  out.augmentation = augmentation_of(out.settings, images, data, info());
  return out;
}

void ResolvedRun::set_threads(int threads) { settings.threads = compute.threads = threads; }

void ResolvedRun::set_checkpoint_steps(std::int64_t steps) {
  settings.checkpoint_steps = checkpoints.steps = steps;
  settings.checkpoint_seconds = checkpoints.seconds = 0;
}

}  // namespace tenon::train

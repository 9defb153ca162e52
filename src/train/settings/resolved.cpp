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

ResolvedModel::ResolvedModel(Settings given) : ResolvedModel(given, DataSource(given.data)) {}

ResolvedModel::ResolvedModel(Settings given, DataSource source)
    : settings(std::move(given)),
      data(std::move(source)),
      network(SettingsNetwork::keep(settings)),
      task(task_of(settings)),
      compute{precision_from_name(settings.precision),
              parse_layer_precision(settings.layer_precision), tune_from_name(settings.tune),
              settings.threads, static_cast<std::uint64_t>(settings.seed)},
      images(image_settings(settings, data, network.info())) {
  if (!settings.lora.empty()) lora = parse_lora(settings.lora);
}

ResolvedRun::ResolvedRun(Settings given)
    : ResolvedModel(std::move(given)),
      augmentation(augmentation_of(*this)),
      optimizer{settings.optimizer, optimizer_options(settings), parse_rates(settings.rate_of)},
      schedule{settings.schedule, schedule_options(settings)},
      checkpoints{settings.keep_checkpoints, settings.checkpoint_steps,
                  settings.checkpoint_seconds},
      frozen{parse_parts(settings.freeze), settings.unfreeze_after, keep_options(settings)} {}

}  // namespace tenon::train

// Parses the settings of a run.
#include "train/resolved.h"

#include "train/frozen.h"
#include "train/settings.h"

namespace tenon::train {
namespace {

optim::OptimizerOptions optimizer_options(const Settings& s) {
  optim::OptimizerOptions o;
  o.lr = s.lr;
  o.weight_decay = s.weight_decay;
  if (s.optimizer == "sgd" || s.optimizer == "rmsprop") o.momentum = s.momentum;
  if (s.optimizer.starts_with("adam")) o.beta2 = s.beta2;
  if (s.optimizer.starts_with("adam") || s.optimizer == "levenberg") o.eps = s.eps;
  o.nesterov = s.nesterov;
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

}  // namespace

ResolvedModel::ResolvedModel(Settings given)
    : settings(std::move(given)),
      network(SettingsNetwork::keep(settings)),
      layer_precision(parse_layer_precision(settings.layer_precision)),
      images(image_settings(settings, network.info())) {
  if (!settings.lora.empty()) lora = parse_lora(settings.lora);
}

ResolvedRun::ResolvedRun(Settings given)
    : ResolvedModel(std::move(given)),
      augmentation(augmentation_of(settings, info())),
      frozen(parse_parts(settings.freeze)),
      rates(parse_rates(settings.rate_of)),
      optimizer(optimizer_options(settings)),
      schedule(schedule_options(settings)) {}

}  // namespace tenon::train

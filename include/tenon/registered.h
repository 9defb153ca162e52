// Losses and callbacks of your own by name, for settings of runs and for the command. Other things
// are registered where they are declared: data::register_source(), data::register_transform(),
// models::register_network(), nn::init::register_initializer(), optim::register_optimizer(),
// optim::register_schedule(), train::register_task(). docs/plugins.md shows all of them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tenon/nn.h>
#include <tenon/train_reports.h>

namespace tenon::train {

struct Settings;
struct TaskNetwork;

/// Makes the loss of a run. Called for the training loss and, with TaskNetwork::label_smoothing 0,
/// for the loss of evaluations.
using LossMaker = std::function<nn::Loss(const TaskNetwork& network)>;
/// Adds a loss for the setting "loss", which replaces the loss of the run's task. Throws ValueError
/// for an empty function, for a name that is empty or has other characters than lower-case letters,
/// digits and underscores, and for a name that is taken.
TENON_API void register_loss(const std::string& name, LossMaker make);
/// The names of the registered losses, in order.
TENON_API std::vector<std::string> loss_names();

/// Makes a callback for a run that begins or is resumed in the folder `dir`; "" if the run writes
/// nothing.
using CallbackMaker =
    std::function<std::shared_ptr<Callback>(const Settings& settings, const std::string& dir)>;
/// Adds a callback for the setting "callbacks", a list of names. A callback does not change what a
/// run computes, except that it may end the run. Throws as register_loss().
TENON_API void register_callback(const std::string& name, CallbackMaker make);
/// The names of the registered callbacks, in order.
TENON_API std::vector<std::string> callback_names();

}  // namespace tenon::train

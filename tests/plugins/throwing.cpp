// A plugin whose entry fails after it has registered something of every kind.
#include <tenon/tenon.h>

#include <stdexcept>

TENON_PLUGIN(throwing, "1.0") {
  using namespace tenon;
  data::register_source({.name = "gone",
                         .usage = "gone",
                         .needs_path = false,
                         .open = [](const std::string&, const data::SourceOptions&) {
                           return [](data::Split) { return std::shared_ptr<data::Dataset>(); };
                         }});
  data::register_transform(
      {.name = "gone", .make = [](const std::vector<double>&) { return data::ImageFunction(); }});
  models::RegisteredNetwork net;
  net.info.name = "gone";
  net.info.input = {3};
  net.info.classes = 2;
  net.make = [](const models::Options&, const std::string&) {
    return nn::AnyModule(nn::Linear(3, 2));
  };
  models::register_network(net);
  nn::init::register_initializer(
      "gone", [](const Shape& shape, const OptionalGenerator&) { return zeros(shape); });
  optim::register_optimizer("gone", {.lr = 1},
                            [](optim::Parameters parameters, const optim::OptimizerOptions&) {
                              return optim::create("sgd", std::move(parameters));
                            });
  optim::register_schedule("gone", [](const optim::ScheduleOptions&) { return optim::constant(); });
  train::register_loss("gone", [](const train::TaskNetwork&) { return nn::Loss(); });
  train::register_callback("gone", [](const train::Settings&, const std::string&) {
    return std::shared_ptr<train::Callback>();
  });
  throw std::runtime_error("the licence server is away");
}

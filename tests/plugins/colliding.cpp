// A plugin that registers a name of the example plugin.
#include <tenon/plugin.h>
#include <tenon/schedules.h>

TENON_PLUGIN(colliding, "2.0") {
  tenon::optim::register_schedule(
      "halving", [](const tenon::optim::ScheduleOptions&) { return tenon::optim::constant(); });
}

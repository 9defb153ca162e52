// The tasks by name: those of tasks.inc, and what a program has registered.
#include <algorithm>
#include <mutex>

#include <tenon/error.h>
#include <tenon/task.h>
#include <tenon/train.h>

#include "base/str.h"
#include "base/system/registrations.h"
#include "models/network.h"
#include "train/settings/settings.h"

namespace tenon::train {

#define TASK(name) std::shared_ptr<const Task> name##_task();
#include "train/tasks/tasks.inc"
#undef TASK

namespace {

// Only grows, as a program adds tasks.
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  std::shared_ptr<const Task> find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(tasks_.begin(), tasks_.end(),
                                    [&](const auto& task) { return task->name() == name; });
    return found == tasks_.end() ? nullptr : *found;
  }
  /// False if the name is taken.
  bool add(std::shared_ptr<const Task> task) {
    const std::string name = task->name();
    const std::lock_guard lock(mutex_);
    for (const auto& other : tasks_)
      if (other->name() == name) return false;
    tasks_.push_back(std::move(task));
    return true;
  }
  void remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    std::erase_if(tasks_, [&](const auto& task) { return task->name() == name; });
  }
  std::vector<std::string> names() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (const auto& task : tasks_) out.push_back(task->name());
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Task>> tasks_{
#define TASK(name) name##_task(),
#include "train/tasks/tasks.inc"
#undef TASK
  };
};

bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

void register_task(std::shared_ptr<const Task> task) {
  if (task == nullptr) throw ValueError("register_task: the task is a null pointer");
  const std::string name = task->name();
  if (!is_name(name))
    throw ValueError(cat("register_task: the name '", name,
                         "' must be lower-case letters, digits and underscores"));
  const std::string what = cat("task '", name, "'");
  if (!Registry::instance().add(std::move(task)))
    throw ValueError(
        cat("register_task: there is a ", what, owner_of(what), " already: choose another name"));
  note_registration(what, [name] { Registry::instance().remove(name); });
}

std::shared_ptr<const Task> find_task(const std::string& name) {
  if (auto task = Registry::instance().find(name)) return task;
  const std::vector<std::string> names = task_names();
  std::string all;
  for (const std::string& each : names) all += (all.empty() ? "" : ", ") + each;
  const std::string near = nearest(name, names.data(), static_cast<int>(names.size()));
  throw ValueError(cat("there is no task '", name, "': the tasks are ", all,
                       near.empty() ? "" : cat("; did you mean '", near, "'?"),
                       ". A program adds its own with register_task()"));
}

std::vector<std::string> task_names() { return Registry::instance().names(); }

std::shared_ptr<const Task> task_of(const Settings& settings) {
  if (settings.task != Settings().task) return find_task(settings.task);
  const std::string own = SettingsNetwork::find(settings).info().task();
  return find_task(own.empty() ? settings.task : own);
}

}  // namespace tenon::train

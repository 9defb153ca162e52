// One flag for each thread.
#include "graph/recording.h"

#include <utility>

namespace tenon {
namespace {
thread_local bool t_recording = false;
}  // namespace

Recording::Recording() noexcept : previous_(std::exchange(t_recording, true)) {}
Recording::~Recording() { t_recording = previous_; }
bool is_recording() noexcept { return t_recording; }

}  // namespace tenon

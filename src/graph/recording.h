// Recording: a transform of a function, such as jvp() or checkpoint(), calls the function to get
// the graph of its results.
#pragma once

namespace tenon {

/// While it lives, this thread calls a function for the graph of its results. So compiled functions
/// that it calls are inlined: their results would otherwise be values without a graph. Nests.
class Recording {
 public:
  Recording() noexcept;
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  bool previous_;
};

/// Whether a Recording lives in this thread.
bool is_recording() noexcept;

}  // namespace tenon

// Which passes of the planner a case is run without: one, or with TENON_TEST_PASSES=all every pass
// that can be switched off (./dev passes), or those that TENON_TEST_PASSES lists between commas.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/error.h>

namespace cases {

/// Switches a pass off while it lives.
class WithoutPass {
 public:
  explicit WithoutPass(const std::string& pass) : pass_(pass) {
    tenon::set_pass_enabled(pass_, false);
  }
  ~WithoutPass() { tenon::set_pass_enabled(pass_, true); }
  WithoutPass(const WithoutPass&) = delete;
  WithoutPass& operator=(const WithoutPass&) = delete;

 private:
  const std::string pass_;
};

inline const std::vector<std::string>& optional_passes() {
  static const std::vector<std::string> passes = [] {
    std::vector<std::string> found;
    for (const std::string& pass : tenon::pass_names()) {
      try {
        const WithoutPass off(pass);
        found.push_back(pass);
      } catch (const tenon::ValueError&) {  // it is required
        continue;
      }
    }
    return found;
  }();
  return passes;
}

/// The passes to switch off, one after another, for the case with this number.
inline std::vector<std::string> passes_off(std::size_t number) {
  const std::vector<std::string>& all = optional_passes();
  const char* asked = std::getenv("TENON_TEST_PASSES");
  if (asked == nullptr) return {all[number % all.size()]};
  if (std::string(asked) == "all") return all;
  std::vector<std::string> some;
  std::stringstream names(asked);
  for (std::string name; std::getline(names, name, ',');) {
    if (std::find(all.begin(), all.end(), name) == all.end())
      FAIL("TENON_TEST_PASSES names '" << name << "', which is no pass that can be switched off");
    some.push_back(name);
  }
  return some;
}

}  // namespace cases

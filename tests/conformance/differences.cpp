// Reading and matching of differences.json.
#include "conformance/differences.h"

#include <algorithm>

#include <tenon/io.h>
#include <nlohmann/json.hpp>

namespace conformance {
namespace {

using Names = std::vector<std::string>;

bool fits(const std::string& wanted, const std::string& is) {
  return wanted.empty() || wanted == is;
}
bool fits(const Names& wanted, const std::string& is) {
  return wanted.empty() || std::count(wanted.begin(), wanted.end(), is) != 0;
}
bool within(const std::string& part, const std::string& text) {
  return text.find(part) != std::string::npos;
}

}  // namespace

Differences::Differences(const std::string& path) {
  for (const auto& entry : nlohmann::json::parse(tenon::io::read_file(path))) {
    Difference d;
    d.reason = entry.at("reason");
    d.what = entry.value("what", "");
    d.where = entry.value("where", "");
    d.device = entry.value("device", "");
    d.shows = entry.value("shows", "");
    d.ops = entry.value("ops", Names());
    d.dtypes = entry.value("dtypes", Names());
    d.whole = entry.value("whole", false);
    list_.push_back(std::move(d));
  }
}

bool Differences::note(const std::string& op, const std::string& id, const std::string& dtype,
                       const std::string& device, What what, const std::string& problem) {
  bool listed = false;
  for (Difference& d : list_) {
    if (!fits(d.ops, op) || !fits(d.dtypes, dtype) || !fits(d.what, name(what)) ||
        !fits(d.device, device) || !within(d.where, id) || !within(d.shows, problem))
      continue;
    ++d.met;
    d.failed += problem.empty() ? 0 : 1;
    listed = true;
  }
  return listed;
}

std::vector<std::string> Differences::stale(bool whole) const {
  std::vector<std::string> out;
  for (const Difference& d : list_)
    if (d.met > 0 && (whole || !d.whole) && d.failed == 0) out.push_back(d.reason);
  return out;
}

}  // namespace conformance

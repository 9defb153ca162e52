// Programs as text: for `tenon inspect`, replay tests and error reports. Printing changes nothing
// in a program.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/sort.h"
#include "base/str.h"
#include "graph/node.h"
#include "ops/table.h"
#include "plan/program/program.h"

namespace tenon {
namespace {

std::string pad_to(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string value_text(const Program& p, ValueId id) {
  static constexpr const char* kKinds[] = {"in", "var", "v", "out", "gone"};
  const Value& v = p.values[static_cast<std::size_t>(id)];
  return cat(kKinds[static_cast<int>(v.kind)], id, ":", v.dtype, v.shape);
}

const char* kind_text(const Region& r) {
  if (r.kind == RegionKind::Contraction && r.has_prologue()) return "prologue+product";
  if (r.kind == RegionKind::Contraction)
    return r.contraction.has_epilogue ? "product+epilogue" : "product";
  if (r.kind == RegionKind::Opaque) return "opaque";
  if (r.kind == RegionKind::Joined) return "joined";
  if (r.kind == RegionKind::Chain) return "chain";
  if (r.map.has_rows) return r.map.reduces.empty() ? "rows" : "rows+columns";
  return r.map.reduces.empty() ? "map" : "columns";
}

std::string space_text(const Region& r) {
  if (r.kind == RegionKind::Contraction) return r.contraction.out_shape.str();
  if (r.kind == RegionKind::Chain && r.band > 0)
    return cat(r.samples, " entries, ", r.band, " rows at a time");
  if (r.kind == RegionKind::Chain) return cat(r.samples, " entries, ", r.slice, " at a time");
  return r.kind == RegionKind::Map ? r.map.space.str() : "";
}

// "sum over [64, 120]  # 6"
std::string what_text(const Region& r) {
  const std::string space = space_text(r);
  return cat(r.title, space.empty() ? "" : " over ", space, r.label == 0 ? "" : "  # ",
             label_text(r.label), "\n");
}

// The same, after the kind of region.
std::string region_text(const Region& r, std::size_t kind_width) {
  return cat(pad_to(cat(kind_text(r), " "), kind_width), what_text(r));
}

/// The separator between parts of two phases.
std::string between(const Region& joined, const Region& part) {
  const bool first = &part == joined.parts.data();
  return first || (&part)[-1].phase == part.phase ? "" : "      then:\n";
}

std::string milliseconds(double ms) {
  const std::int64_t hundredths = std::llround(ms * 100);
  return cat(hundredths / 100, ".", hundredths % 100 < 10 ? "0" : "", hundredths % 100, " ms");
}

// The steps of a body, below the step that runs them.
std::string indented(const std::string& text) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    out += cat("    ", text.substr(begin, end - begin));
    begin = end;
  }
  return out;
}

}  // namespace

std::string print_graph(const Program& p) {
  std::string out = p.graph.text("");
  if (p.devices.size() > 1)
    for (const Step& step : p.steps)
      for (const auto& body : step.region.opaque.bodies)
        out += body->graph.text(cat(body->device.str(), "  "));
  return out;
}

std::string print_steps(const Program& p) {
  std::string out;
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const Region& r = p.steps[s].region;
    out += cat(pad_to(std::to_string(s), 4), pad_to(kind_text(r), 17),
               pad_to(p.steps[s].engine->name(), 12), what_text(r), "      ");
    for (ValueId id : r.reads) out += cat(value_text(p, id), " ");
    out += "->";
    for (ValueId id : r.writes) out += cat(" ", value_text(p, id));
    out += '\n';
    for (const Region& part : r.parts) out += cat(between(r, part), "      ", region_text(part, 9));
    for (const auto& body : r.opaque.bodies) out += indented(print_steps(*body));
  }
  return out;
}

std::string print_engines(const Program& p) {
  std::string out;
  std::vector<std::pair<const Engine*, int>> counts;
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const Step& step = p.steps[s];
    out += cat(pad_to(std::to_string(s), 4), pad_to(step.engine->name(), 12), step.region.title);
    if (step.region.label != 0) out += cat("  # ", label_text(step.region.label));
    if (!step.choice.empty())
      out +=
          cat("\n      ", step.configuration.empty() ? "its own configuration" : step.configuration,
              ", ", step.choice);
    if (!step.passed_over.empty()) out += cat("\n      passed over: ", step.passed_over);
    out += '\n';
    auto found = counts.begin();
    while (found != counts.end() && found->first != step.engine) ++found;
    if (found == counts.end()) found = counts.insert(found, {step.engine, 0});
    ++found->second;
  }
  for (const auto& [engine, count] : counts) out += cat(engine->name(), ": ", count, " steps\n");
  return out;
}

std::string print_arena(const Program& p) {
  std::vector<std::pair<std::int64_t, std::string>> rows;
  const auto add = [&rows](std::int64_t offset, std::int64_t bytes, const std::string& steps,
                           const std::string& what) {
    rows.push_back({offset, cat(pad_to(std::to_string(offset), 12),
                                pad_to(std::to_string(bytes), 12), pad_to(steps, 12), what, "\n")});
  };
  for (std::size_t k = 0; k < p.values.size(); ++k)
    if (const Value& v = p.values[k]; v.kind == Value::Kind::Arena)
      add(v.offset, v.bytes, cat(v.first_step, "..", v.last_step),
          cat(value_text(p, static_cast<ValueId>(k)), v.label == 0 ? "" : "  # ",
              label_text(v.label)));
  for (std::size_t s = 0; s < p.steps.size() && p.traits.overlaps_steps; ++s)
    if (p.steps[s].kernel != nullptr && p.steps[s].kernel->workspace_bytes > 0)
      add(p.steps[s].workspace_offset,
          static_cast<std::int64_t>(p.steps[s].kernel->workspace_bytes), std::to_string(s),
          "workspace");
  sort_stably(rows, [](const auto& a, const auto& b) { return a.first < b.first; });
  if (!p.traits.overlaps_steps)
    add(p.workspace_offset, p.arena_bytes - p.workspace_offset, "all", "workspace");
  std::string out = cat(pad_to("offset", 12), pad_to("bytes", 12), pad_to("steps", 12), "value\n");
  for (const auto& row : rows) out += row.second;
  out += cat("arena ", p.arena_bytes, " B, outputs ", p.output_bytes, " B, leaves ", p.leaf_bytes,
             " B, peak ", p.peak_bytes(), " B\n");
  return out;
}

std::string print_fusion(const Program& p) {
  std::string out;
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const Region& r = p.steps[s].region;
    out += cat(pad_to(std::to_string(s), 4), kind_text(r), " ", r.title);
    if (r.label != 0) out += cat("  # ", label_text(r.label));
    out += cat("\n      ", r.why.empty() ? "nothing else could join" : r.why, "\n");
    for (const Region& part : r.parts)
      out += cat(between(r, part), "      ", region_text(part, 9), "        ",
                 part.why.empty() ? "nothing else could fuse" : part.why, "\n");
    if (!p.steps[s].passed_over.empty())
      out += cat("      engines passed over: ", p.steps[s].passed_over, "\n");
  }
  out += cat("joined: ", p.joining, "\n");
  return out;
}

std::string print_passes(const Program& p) {
  constexpr std::size_t kPassWidth = 28;
  std::string out;
  for (const PassRecord& pass : p.passes)
    out += cat(pad_to(pass.name, kPassWidth), pad_to(milliseconds(pass.ms), 12), pass.before,
               " -> ", pass.after, " ", pass.unit, "\n");
  out += cat(pad_to("total", kPassWidth), milliseconds(p.planning_ms), "\n");
  return out;
}

std::string largest_values(const Program& program) {
  constexpr std::size_t kShown = 3;
  std::vector<const Value*> largest;
  for (const Value& v : program.values) largest.push_back(&v);
  const std::size_t shown = std::min(kShown, largest.size());
  std::partial_sort(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(shown),
                    largest.end(),
                    [](const Value* a, const Value* b) { return a->bytes > b->bytes; });
  std::string text;
  for (std::size_t k = 0; k < shown; ++k) {
    const std::string& label = label_text(largest[k]->label);
    const bool is_path = !label.empty() && std::isdigit(static_cast<unsigned char>(label[0])) != 0;
    text += cat(k == 0 ? "" : ", ", size_text(largest[k]->bytes), " for ", largest[k]->dtype,
                largest[k]->shape, label.empty() ? "" : " of ", is_path ? "layer " : "", label);
  }
  return text;
}

}  // namespace tenon

// Matches tensors of a file with those of a network: removes wrapper prefixes, recognises the
// family, applies its rules, and reports the changes. Only values that fit are read.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>
#include <tenon/published_weights.h>

#include "base/make_error.h"
#include "base/str.h"
#include "io/weight_norm.h"
#include "models/weights/weight_families.h"

namespace tenon::models {
namespace {

constexpr std::string_view kCounter = ".num_batches_tracked";  // older files lack it

// A tensor of the file, while its place in the network is determined.
struct Candidate {
  std::string name;       // name after the changes so far
  std::size_t index = 0;  // index in the file
  bool transposed = false;
  std::optional<std::size_t>
      magnitude{};        // weight norm: index of the magnitude; `index` is the direction
  std::string refusal{};  // why the value cannot be used; "": it can
};

// How often a rule was applied, and its first example.
struct Deed {
  std::size_t count = 0;
  std::string from, to;
  void add(const std::string& was, const std::string& is) {
    if (count++ == 0) from = was, to = is;
  }
};

std::string few(const std::vector<std::string>& items) {
  constexpr std::size_t kShown = 4;
  std::string out;
  for (std::size_t k = 0; k < std::min(items.size(), kShown); ++k)
    out += cat(k == 0 ? "" : ", ", items[k]);
  return items.size() > kShown ? cat(out, " and ", items.size() - kShown, " more") : out;
}

Shape transposed_shape(const Shape& shape) { return {shape[1], shape[0]}; }

Tensor transposed_values(const Tensor& matrix) {
  const auto rows = static_cast<std::size_t>(matrix.size(0)),
             columns = static_cast<std::size_t>(matrix.size(1)), item = item_size(matrix.dtype());
  const auto* from = static_cast<const char*>(matrix.data());
  std::string out(rows * columns * item, '\0');
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      std::memcpy(out.data() + (c * rows + r) * item, from + (r * columns + c) * item, item);
  return Tensor::from_data(out.data(), transposed_shape(matrix.shape()), matrix.dtype(), Device{});
}

bool same_values(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(),
                     static_cast<std::size_t>(a.numel()) * item_size(a.dtype())) == 0;
}

bool any_begins(const io::TensorMap& wanted, std::string_view prefix) {
  const auto it = wanted.lower_bound(std::string(prefix));
  return it != wanted.end() && it->first.starts_with(prefix);
}

class Fitting {
 public:
  Fitting(const io::WeightFile& file, const io::TensorMap& wanted) : file_(file), wanted_(wanted) {
    all_.reserve(file.tensors().size());
    for (std::size_t i = 0; i < file.tensors().size(); ++i)
      all_.push_back({file.tensors()[i].name, i, false});
  }

  const WeightFamily* unwrap_and_report() {
    while (unwrap_once()) continue;
    for (const std::string_view wrapper : weight_path_wrappers()) take_out(wrapper);
    join_parametrized();
    std::map<std::string_view, std::size_t> index_of;
    for (const Candidate& candidate : all_) index_of.emplace(candidate.name, candidate.index);
    for (const WeightFamily& family : weight_families()) {
      const auto sign = index_of.find(family.sign);
      if (sign == index_of.end()) continue;
      const Shape& shape = file_.tensors()[sign->second].shape;
      const bool tall = shape.rank() == 2 && shape[0] > shape[1];
      using SignShape = WeightFamily::SignShape;
      const bool fits = family.sign_shape == SignShape::Any ? true
                        : family.sign_shape == SignShape::OneRow
                            ? shape.rank() == 2 && shape[0] == 1
                            : tall == (family.sign_shape == SignShape::Tall);
      if (fits) return &family;
    }
    return nullptr;
  }

  WeightFit run() {
    if (const WeightFamily* family = unwrap_and_report()) {
      fit_.family = family->name;
      fit_.normalize = family->normalize;
      fit_.unsupported = family->why_not;
      apply(*family);
    }
    place();
    for (const auto& [name, place] : tied_) check_tied(name, place);
    std::size_t counters = 0;
    for (const auto& [name, tensor] : wanted_) {
      if (placed_.contains(name)) continue;
      if (name.ends_with(kCounter))
        ++counters;
      else
        fit_.missing.push_back(name);
    }
    for (const std::string& name : fit_.missing)
      for (const io::Unread& one : file_.unread())
        if (one.name == name || one.name.ends_with("." + name))
          fit_.unread.push_back(cat("'", one.name, "' is ", one.what));
    if (counters > 0 && !placed_.empty())
      fit_.done.push_back(
          cat(counters,
              " batch counters (num_batches_tracked) are not in the file and keep their value"));
    return std::move(fit_);
  }

 private:
  // Removes one wrapper's prefix from names. Tensors without the prefix are then ignored.
  bool unwrap_once() {
    for (const std::string_view wrapper : weight_wrappers()) {
      if (any_begins(wanted_, wrapper)) continue;
      std::vector<Candidate> inside;
      std::vector<std::string> beside;
      for (const Candidate& candidate : all_)
        if (candidate.name.starts_with(wrapper))
          inside.push_back(
              {candidate.name.substr(wrapper.size()), candidate.index, candidate.transposed});
        else
          beside.push_back(cat("'", candidate.name, "'"));
      if (inside.empty()) continue;
      fit_.done.push_back(cat("prefix '", wrapper, "' removed from ", inside.size(), " names"));
      if (!beside.empty()) fit_.done.push_back(cat("left out, without this prefix: ", few(beside)));
      all_ = std::move(inside);
      return true;
    }
    return false;
  }

  static bool has_segment(std::string_view path, std::string_view segment) {
    return segment_at(path, segment) != std::string_view::npos;
  }
  static std::size_t segment_at(std::string_view path, std::string_view segment) {
    for (std::size_t at = path.find(segment); at != std::string_view::npos;
         at = path.find(segment, at + 1))
      if ((at == 0 || path[at - 1] == '.') && at + segment.size() < path.size() &&
          path[at + segment.size()] == '.')
        return at;
    return std::string_view::npos;
  }

  // Removes a wrapper's component from the middle of names, if the network has no part of that
  // name.
  void take_out(std::string_view wrapper) {
    for (const auto& [name, tensor] : wanted_)
      if (has_segment(name, wrapper)) return;
    std::size_t names = 0;
    for (Candidate& candidate : all_) {
      bool taken = false;
      for (std::size_t at = segment_at(candidate.name, wrapper); at != std::string::npos;
           at = segment_at(candidate.name, wrapper)) {
        candidate.name.erase(at, wrapper.size() + 1);
        taken = true;
      }
      names += taken ? 1 : 0;
    }
    if (names > 0) fit_.done.push_back(cat("'", wrapper, ".' removed from ", names, " names"));
  }

  // Tensors from which a module computes a weight become that weight, or a refusal that names them.
  void join_parametrized() {
    std::map<std::string, std::map<std::string, std::size_t>> parts;  // indices into all_
    std::unordered_set<std::string_view> names;
    for (const Candidate& candidate : all_) names.insert(candidate.name);
    for (std::size_t k = 0; k < all_.size(); ++k)
      if (const auto of = io::parametrized(all_[k].name);
          of && !wanted_.contains(all_[k].name) && !names.contains(of->weight))
        parts[of->weight].emplace(of->part, k);
    std::set<std::size_t> gone;
    Deed joined;
    for (const auto& [weight, found] : parts) join_one(weight, found, gone, joined);
    if (gone.empty()) return;
    std::vector<Candidate> kept;
    kept.reserve(all_.size() - gone.size());
    for (std::size_t k = 0; k < all_.size(); ++k)
      if (!gone.contains(k)) kept.push_back(std::move(all_[k]));
    all_ = std::move(kept);
    if (joined.count > 0)
      fit_.done.push_back(cat(joined.count,
                              " computed from the two tensors of a weight norm, for instance '",
                              joined.from, "'"));
  }

  void join_one(const std::string& weight, const std::map<std::string, std::size_t>& found,
                std::set<std::size_t>& gone, Deed& joined) {
    const auto place = [&](const char* newer, const char* older) {
      const auto it = found.find(newer);
      return it != found.end() ? it : found.find(older);
    };
    const auto magnitude = place("original0", "g"), direction = place("original1", "v");
    const bool of_norm = found.size() == 2 && magnitude != found.end() && direction != found.end();
    const auto tensor = [&](std::size_t k) -> const io::StoredTensor& {
      return file_.tensors()[all_[k].index];
    };
    const auto is_older = [&](const auto& part) {
      return part.first == "g" || part.first == "v" || part.first == "u";
    };
    if (of_norm && is_floating(tensor(magnitude->second).dtype) &&
        is_floating(tensor(direction->second).dtype) &&
        io::is_weight_norm(tensor(magnitude->second).shape, tensor(direction->second).shape)) {
      Candidate& kept = all_[direction->second];
      joined.add(kept.name, weight);
      kept.magnitude = all_[magnitude->second].index;
      kept.name = weight;
      gone.insert(magnitude->second);
      return;
    }
    // "weight_g" alone, in a network without a parametrization, is an ordinary name.
    const bool spectral = found.contains("orig") && found.contains("u");
    if (!spectral && std::all_of(found.begin(), found.end(), is_older)) return;
    if (found.size() == 1 && found.begin()->first == "orig") return;
    std::string listed;
    for (const auto& [part, k] : found) listed += cat(listed.empty() ? "'" : ", '", part, "'");
    bool first = true;
    for (const auto& [part, k] : found) {
      if (!std::exchange(first, false)) {
        gone.insert(k);
        continue;
      }
      all_[k].name = weight;
      all_[k].refusal = cat("is computed from ", listed,
                            " by a parametrization other than weight norm: call "
                            "torch.nn.utils.parametrize.remove_parametrizations() (or "
                            "remove_spectral_norm()) before saving");
    }
  }

  void apply(const WeightFamily& family) {
    Deed renames, turns;
    std::map<std::string_view, Deed> outs;
    std::vector<Candidate> kept;
    kept.reserve(all_.size());
    for (Candidate& candidate : all_) {
      const RenameRule* rule = nullptr;
      std::optional<std::string> to;
      for (const RenameRule& each : family.rules)
        if ((to = renamed(each, candidate.name))) {
          rule = &each;
          break;
        }
      if (rule == nullptr) {
        kept.push_back(std::move(candidate));
      } else if (rule->change == WeightChange::LeftOut) {
        outs[rule->to].add(candidate.name, "");
      } else if (rule->change == WeightChange::OneTasks && !wanted_.contains(*to)) {
        outs["of another task"].add(candidate.name, "");
      } else if (rule->change == WeightChange::SameAs) {
        tied_.emplace_back(candidate, *to);
      } else {
        candidate.transposed = rule->change == WeightChange::Transposed &&
                               file_.tensors()[candidate.index].shape.rank() == 2;
        if (candidate.transposed) turns.add(candidate.name, *to);
        if (*to != candidate.name) renames.add(candidate.name, *to);
        candidate.name = std::move(*to);
        kept.push_back(std::move(candidate));
      }
    }
    all_ = std::move(kept);
    if (renames.count > 0)
      fit_.done.push_back(
          cat(renames.count, " renamed, for instance '", renames.from, "' to '", renames.to, "'"));
    if (turns.count > 0)
      fit_.done.push_back(cat(turns.count, " transposed, for instance '", turns.from, "'"));
    for (const auto& [what, deed] : outs)
      fit_.done.push_back(cat(deed.count, " left out, for instance '", deed.from, "': ", what));
  }

  void place() {
    std::map<std::size_t, Tensor> values;  // tied tensors are read once
    for (const Candidate& candidate : all_) {
      const io::StoredTensor& stored = file_.tensors()[candidate.index];
      const auto want = wanted_.find(candidate.name);
      if (want == wanted_.end()) {
        fit_.foreign.push_back(stored.name);
        continue;
      }
      if (!candidate.refusal.empty())
        throw make_error<NotSupported>(FileName{file_.path()}, ": '", candidate.name, "' ",
                                       candidate.refusal);
      if (!placed_.insert(candidate.name).second)
        throw make_error<ValueError>(FileName{file_.path()}, ": two tensors match '",
                                     candidate.name, "' of the network; the second is '",
                                     stored.name, "'");
      const Shape shape = candidate.transposed ? transposed_shape(stored.shape) : stored.shape;
      if (shape != want->second.shape()) {
        fit_.misshapen.push_back(cat("'", candidate.name, "' is ", shape, " in the file and ",
                                     want->second.shape(), " in the network"));
        continue;
      }
      if (candidate.transposed || candidate.magnitude) {
        Tensor value = file_.read(candidate.index);
        if (candidate.magnitude)
          value = io::weight_of_norm(file_.read(*candidate.magnitude), value);
        fit_.tensors.emplace(candidate.name,
                             candidate.transposed ? transposed_values(value) : value);
        continue;
      }
      Tensor& value = values[stored.value];
      if (!value.defined()) value = file_.read(candidate.index);
      fit_.tensors.emplace(candidate.name, value);
    }
  }

  // A tied tensor must be equal to the tensor that the network stores under another name.
  void check_tied(const Candidate& candidate, const std::string& place) {
    const auto given = fit_.tensors.find(place);
    if (given == fit_.tensors.end()) {
      const auto want = wanted_.find(place);
      const io::StoredTensor& stored = file_.tensors()[candidate.index];
      if (want == wanted_.end() || placed_.contains(place) ||
          stored.shape != want->second.shape()) {
        fit_.foreign.push_back(stored.name);
        return;
      }
      placed_.insert(place);
      fit_.tensors.emplace(place, file_.read(candidate.index));
      fit_.done.push_back(cat("'", candidate.name, "' used as '", place, "'"));
      return;
    }
    if (!same_values(given->second, file_.read(candidate.index)))
      throw make_error<ValueError>(
          FileName{file_.path()}, ": '", candidate.name, "' is not equal to '", place,
          "', and the network has one tensor for both: it would compute something "
          "else");
    fit_.done.push_back(cat("'", candidate.name, "' equals '", place, "'"));
  }

  const io::WeightFile& file_;
  const io::TensorMap& wanted_;
  std::vector<Candidate> all_;
  std::vector<std::pair<Candidate, std::string>> tied_;
  std::set<std::string> placed_;
  WeightFit fit_;
};

}  // namespace

std::string WeightFit::differences() const {
  std::vector<std::string> parts;
  const auto add = [&](const char* what, const std::vector<std::string>& names, bool quoted) {
    std::vector<std::string> shown = names;
    if (quoted)
      for (std::string& name : shown) name = cat("'", name, "'");
    if (!names.empty()) parts.push_back(cat(what, few(shown)));
  };
  add("missing: ", missing, true);
  add("of another shape: ", misshapen, false);
  add("not in the network: ", foreign, true);
  add("not read: ", unread, false);
  std::string out;
  for (const std::string& part : parts) out += cat(out.empty() ? "" : "; ", part);
  return out;
}

WeightFit fit_weights(const io::WeightFile& file, const io::TensorMap& wanted) {
  return Fitting(file, wanted).run();
}

std::string weight_family(const io::WeightFile& file) {
  const io::TensorMap none;
  const WeightFamily* family = Fitting(file, none).unwrap_and_report();
  return family == nullptr ? std::string() : std::string(family->name);
}

}  // namespace tenon::models

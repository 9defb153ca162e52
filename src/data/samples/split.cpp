// Samples are shuffled by the seed. The test part is taken first, then the validation part from the
// rest.
//
// Stratification: the share of each class is rounded down, and the classes with the largest
// remainders get one sample more. So each class has its share of every part to within one sample,
// as in scikit-learn's StratifiedShuffleSplit and StratifiedKFold.
#include "data/samples/split.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include <tenon/error.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/sort.h"
#include "base/str.h"
#include "data/samples/order.h"

namespace tenon::data {
namespace {

using Indices = std::vector<std::int64_t>;

constexpr double kUsualShare = 0.1;  // where none is set
constexpr std::int64_t kFewest = 3;  // fewer samples or groups have no validation part

double test_share(const SplitOptions& o) { return o.test.value_or(kUsualShare); }
double validation_share(const SplitOptions& o) { return o.validation.value_or(kUsualShare); }

void check(const SplitOptions& o, const SampleMarks& marks, const std::string& name) {
  checked_shares(o, name);
  const bool stratify = o.stratify.value_or(false);
  if (stratify && marks.classes.empty())
    throw make_error<ValueError>(FileName{name},
                                 ": 'stratify' keeps the shares of classes, and it has none");
  if (stratify && !o.group.empty())
    throw make_error<ValueError>(
        FileName{name},
        ": groups stay whole or classes keep their shares: choose 'group' or 'stratify'");
  if (o.chronological && (stratify || !o.group.empty()))
    throw make_error<ValueError>(
        FileName{name}, ": a chronological division keeps the order of the samples: leave out '",
        stratify ? "stratify" : "group", "'");
  if (!o.group.empty() && marks.groups.empty())
    throw make_error<ValueError>(FileName{name}, ": 'group' keeps groups whole, and it has none");
}

// The number of samples in a share of `count`: at least one, and at least one remains.
std::int64_t quota(double share, std::int64_t count) {
  if (share <= 0 || count < 2) return 0;
  const auto rounded = static_cast<std::int64_t>(std::llround(share * static_cast<double>(count)));
  return std::clamp<std::int64_t>(rounded, 1, count - 1);
}

// Refuses a share that is rounded to all samples.
void require_rest(double share, std::int64_t count, const char* part, const std::string& name) {
  if (share > 0.5 && count > 1 && std::llround(share * static_cast<double>(count)) >= count)
    throw make_error<ValueError>(FileName{name}, ": the ", part, " part's share, ", share, " of ",
                                 count, " samples, leaves none for training: choose a smaller one");
}

// Refuses more folds than there are samples, groups or units to distribute. Chronological folds
// need one more, because a fold is trained on the block before it.
void require_folds(const SplitOptions& o, std::int64_t things, const char* called,
                   const std::string& name) {
  const std::int64_t most = things - (o.chronological ? 1 : 0);
  if (o.folds <= most) return;
  throw make_error<ValueError>(
      FileName{name}, ": fold ", o.fold, " of ", o.folds, ": there are ", things, called,
      most < 2 ? ", too few for folds"
               : cat(", which make ", most, " folds at most: give fewer folds"));
}

// A class's range in `list`, and how many of its samples go to the part.
struct ClassShare {
  std::size_t from = 0, to = 0;
  std::int64_t take = 0;
  double remainder = 0;
};

// Distributes `wanted` samples over the classes in proportion, never all samples of a class.
std::vector<ClassShare> class_shares(const Indices& list, std::int64_t wanted,
                                     const Indices& classes, std::uint64_t seed) {
  std::vector<ClassShare> out;
  const double rate = static_cast<double>(wanted) / static_cast<double>(list.size());
  std::int64_t given = 0;
  for (std::size_t from = 0; from < list.size();) {
    std::size_t to = from;
    while (to < list.size() && classes[at(list[to])] == classes[at(list[from])]) ++to;
    const double due = rate * static_cast<double>(to - from);
    const auto whole = static_cast<std::int64_t>(std::floor(due));
    out.push_back({from, to, whole, due - std::floor(due)});
    given += whole;
    from = to;
  }
  // Among equal remainders, the order of classes is shuffled by the seed.
  std::vector<std::int64_t> order = epoch_order(seed, 1, std::ssize(out));
  sort_stably(order, [&](std::int64_t a, std::int64_t b) {
    return out[at(a)].remainder > out[at(b)].remainder;
  });
  for (const std::int64_t c : order) {
    if (given >= wanted) break;
    ClassShare& share = out[at(c)];
    const auto size = static_cast<std::int64_t>(share.to - share.from);
    if (share.remainder == 0 || share.take + 1 >= size) continue;
    ++share.take, ++given;
  }
  return out;
}

// Chooses quota(share, list) samples of `list`. With stratification `list` is ordered by class.
Indices take_share(const Indices& list, double share, const Indices* classes, std::uint64_t seed) {
  const std::int64_t wanted = quota(share, std::ssize(list));
  Indices taken;
  if (wanted == 0) return taken;
  if (classes == nullptr) return Indices(list.begin(), list.begin() + wanted);
  for (const ClassShare& c : class_shares(list, wanted, *classes, seed))
    taken.insert(taken.end(), list.begin() + static_cast<std::ptrdiff_t>(c.from),
                 list.begin() + static_cast<std::ptrdiff_t>(c.from) + c.take);
  // Every class has a single sample, so no class can give one in proportion; but the part must not
  // be empty.
  if (taken.empty()) taken.push_back(list.back());
  return taken;
}

// Takes whole groups in shuffled order, each if it brings the part closer to its share; if all are
// too large, the smallest one. At least one group is left.
std::vector<bool> take_groups(const Indices& group_order, const Indices& sizes,
                              const std::vector<bool>& gone, double share, std::int64_t fewest) {
  std::vector<bool> taken(sizes.size());
  std::int64_t left = 0, groups = 0, have = 0, smallest = -1;
  for (const std::int64_t g : group_order) {
    if (gone[at(g)]) continue;
    left += sizes[at(g)], ++groups;
    if (smallest < 0 || sizes[at(g)] < sizes[at(smallest)]) smallest = g;
  }
  const double wanted = share * static_cast<double>(left);
  if (wanted <= 0 || groups < fewest) return taken;
  for (const std::int64_t g : group_order) {
    const double missing = wanted - static_cast<double>(have);
    if (gone[at(g)] || groups < 2 || static_cast<double>(sizes[at(g)]) >= 2 * missing) continue;
    taken[at(g)] = true;
    have += sizes[at(g)];
    --groups;
  }
  if (have == 0) taken[at(smallest)] = true;
  return taken;
}

// The largest groups first, each to the fold with the fewest samples, as scikit-learn's GroupKFold
// does.
std::vector<bool> group_fold(const SplitOptions& o, Indices order, const Indices& sizes) {
  std::vector<bool> out(sizes.size());
  sort_stably(order, [&](std::int64_t a, std::int64_t b) { return sizes[at(a)] > sizes[at(b)]; });
  std::set<std::pair<std::int64_t, int>> folds;  // samples so far, and the fold
  for (int fold = 1; fold <= std::min<std::int64_t>(o.folds, std::ssize(sizes)); ++fold)
    folds.emplace(0, fold);
  for (const std::int64_t group : order) {
    const auto [samples, fold] = *folds.begin();
    folds.erase(folds.begin());
    folds.emplace(samples + sizes[at(group)], fold);
    out[at(group)] = fold == o.fold;
  }
  return out;
}

Parts divide_groups(const SplitOptions& o, std::int64_t samples, const SampleMarks& marks,
                    const std::string& name) {
  const std::int64_t groups =
      samples == 0 ? 0 : *std::max_element(marks.groups.begin(), marks.groups.end()) + 1;
  Indices sizes(at(groups));
  for (const std::int64_t group : marks.groups) ++sizes[at(group)];
  const Indices order = epoch_order(o.seed, 0, groups);
  const std::vector<bool> none(sizes.size());
  if (o.folds != 0) require_folds(o, groups, cat(" groups of '", o.group, "'").c_str(), name);
  const std::vector<bool> test = o.folds != 0 ? group_fold(o, order, sizes)
                                              : take_groups(order, sizes, none, test_share(o), 2);
  const std::vector<bool> validation =
      take_groups(order, sizes, test, validation_share(o), kFewest);
  Parts out(at(samples), Split::Train);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (test[at(marks.groups[i])]) out[i] = Split::Test;
    if (validation[at(marks.groups[i])]) out[i] = Split::Validation;
  }
  return out;
}

// Fold i of k is the i-th of the last k of k + 1 blocks, trained on all that comes before, as
// scikit-learn's TimeSeriesSplit.
Parts divide_in_time(const SplitOptions& o, std::int64_t samples, const std::string& name) {
  if (o.folds == 0) require_rest(test_share(o), samples, "test", name);
  std::int64_t from = samples - quota(test_share(o), samples), to = samples;
  if (o.folds != 0) {
    require_folds(o, samples, " samples in order", name);
    const std::int64_t block = samples / (o.folds + 1);
    from = samples - (o.folds + 1 - o.fold) * block;
    to = from + block;
  }
  require_rest(validation_share(o), from, "validation", name);
  const std::int64_t validation = from >= kFewest ? quota(validation_share(o), from) : 0;
  Parts out(at(samples));
  for (std::int64_t i = 0; i < to; ++i)
    out[at(i)] = i >= from                ? Split::Test
                 : i >= from - validation ? Split::Validation
                                          : Split::Train;
  return out;
}

// Stable. Class numbers are usually few, so they are counted: a comparison sort of three million
// samples takes a second.
void sort_by_class(Indices& list, const Indices& classes) {
  if (list.empty()) return;
  const auto ends = std::minmax_element(classes.begin(), classes.end());
  const std::int64_t least = *ends.first;
  const std::uint64_t range =
      static_cast<std::uint64_t>(*ends.second) - static_cast<std::uint64_t>(least);
  if (range >= list.size() + 1024) {
    std::stable_sort(list.begin(), list.end(), [&](std::int64_t a, std::int64_t b) {
      return classes[at(a)] < classes[at(b)];
    });
    return;
  }
  const auto slot = [&](std::int64_t i) { return at(classes[at(i)] - least); };
  std::vector<std::size_t> begins(range + 2);
  for (const std::int64_t i : list) ++begins[slot(i) + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  Indices sorted(list.size());
  for (const std::int64_t i : list) sorted[begins[slot(i)]++] = i;
  list = std::move(sorted);
}

Parts divide_shuffled(const SplitOptions& o, std::int64_t samples, const SampleMarks& marks,
                      const std::string& name) {
  if (o.folds != 0)
    require_folds(o, samples, " samples", name);
  else
    require_rest(test_share(o), samples, "test", name);
  const bool stratify = o.stratify.value_or(!marks.classes.empty());
  const Indices* classes = stratify ? &marks.classes : nullptr;
  Indices list = epoch_order(o.seed, 0, samples);
  if (stratify) sort_by_class(list, marks.classes);
  Parts out(at(samples), Split::Train);
  if (o.folds != 0) {
    for (std::size_t k = 0; k < list.size(); ++k)
      if (static_cast<int>(k % at(o.folds)) == o.fold - 1) out[at(list[k])] = Split::Test;
  } else {
    for (const std::int64_t i : take_share(list, test_share(o), classes, o.seed))
      out[at(i)] = Split::Test;
  }
  std::erase_if(list, [&](std::int64_t i) { return out[at(i)] == Split::Test; });
  require_rest(validation_share(o), std::ssize(list), "validation", name);
  if (std::ssize(list) < kFewest) return out;
  for (const std::int64_t i : take_share(list, validation_share(o), classes, o.seed))
    out[at(i)] = Split::Validation;
  return out;
}

std::int64_t unit_count(const SampleMarks& marks) {
  return *std::max_element(marks.units.begin(), marks.units.end()) + 1;
}

// The marks of units: those of each unit's first sample.
SampleMarks marks_of_units(const SampleMarks& marks) {
  std::vector<bool> known(at(unit_count(marks)));
  SampleMarks out;
  if (!marks.classes.empty()) out.classes.resize(known.size());
  if (!marks.groups.empty()) out.groups.resize(known.size());
  for (std::size_t i = 0; i < marks.units.size(); ++i) {
    const std::size_t unit = at(marks.units[i]);
    if (known[unit]) continue;
    known[unit] = true;
    if (!marks.classes.empty()) out.classes[unit] = marks.classes[i];
    if (!marks.groups.empty()) out.groups[unit] = marks.groups[i];
  }
  return out;
}

// The marks of the chosen samples, renumbered without gaps.
SampleMarks marks_of(const SampleMarks& marks, const Indices& chosen) {
  const auto of = [&](const Indices& all, bool renumber) {
    Indices out;
    if (all.empty()) return out;
    out.reserve(chosen.size());
    std::unordered_map<std::int64_t, std::int64_t> numbers;
    for (const std::int64_t i : chosen)
      out.push_back(renumber ? numbers.emplace(all[at(i)], std::ssize(numbers)).first->second
                             : all[at(i)]);
    return out;
  };
  return {of(marks.classes, false), of(marks.groups, true), of(marks.units, true)};
}

// The number of groups, units or samples, whichever stay together.
std::int64_t count_to_divide(const SplitOptions& o, const Indices& samples,
                             const SampleMarks& marks) {
  const Indices& whole = !o.group.empty() && !marks.groups.empty() ? marks.groups : marks.units;
  if (whole.empty()) return std::ssize(samples);
  return *std::max_element(whole.begin(), whole.end()) + 1;
}

bool has_fixed_part(const Samples& samples, Split part) {
  return std::find(samples.fixed_parts.begin(), samples.fixed_parts.end(), part) !=
         samples.fixed_parts.end();
}

// "'cat', 'dog'", and an ellipsis after ten.
std::string quoted_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 10;
  std::string out;
  for (std::size_t k = 0; k < std::min(names.size(), kMostNamed); ++k)
    out += cat(k == 0 ? "" : ", ", "'", names[k], "'");
  return names.size() > kMostNamed ? out + ", …" : out;
}

// Which of the classes the part's samples lack.
std::vector<std::string> lacking(const Indices& classes, const Indices& own,
                                 const std::vector<std::string>& class_names) {
  const std::int64_t most = *std::max_element(classes.begin(), classes.end());
  const std::size_t count = most < 0 ? 0 : at(most + 1);
  std::vector<bool> anywhere(count), here(count);
  // An ignored target (kIgnoredTarget) belongs to no class.
  for (const std::int64_t c : classes)
    if (c >= 0) anywhere[at(c)] = true;
  for (const std::int64_t i : own)
    if (classes[at(i)] >= 0) here[at(classes[at(i)])] = true;
  std::vector<std::string> out;
  for (std::size_t c = 0; c < count; ++c)
    if (anywhere[c] && !here[c])
      out.push_back(c < class_names.size() ? class_names[c] : std::to_string(c));
  return out;
}

// Notes how many groups or units each part has. The number of samples alone would not show a group
// option that groups nothing.
void note_wholes(const SplitOptions& o, const Parts& parts, const SampleMarks& marks,
                 const std::string& source, Notes& notes) {
  const bool grouped = !o.group.empty() && !marks.groups.empty();
  const Indices& wholes = grouped ? marks.groups : marks.units;
  if (wholes.empty()) return;
  const std::int64_t count = *std::max_element(wholes.begin(), wholes.end()) + 1;
  const bool alone = count == std::ssize(wholes);
  if (alone && !grouped) return;
  std::vector<std::optional<Split>> part_of(at(count));
  for (std::size_t i = 0; i < wholes.size(); ++i) part_of[at(wholes[i])] = parts[i];
  const auto of = [&](Split part) { return std::count(part_of.begin(), part_of.end(), part); };
  const std::string shares = cat(of(Split::Train), " for training, ", of(Split::Validation),
                                 " for validation, ", of(Split::Test), " for testing");
  if (alone)
    notes.push_back({cat("split by group '", o.group, "' keeps nothing together: each of ", count,
                         " groups is one sample (", shares, ")"),
                     count, source});
  else
    notes.push_back({cat(grouped ? cat("split by group '", o.group, "': ", count, " groups, ")
                                 : cat("samples of one file or text stay together: ", count,
                                       " files or texts, "),
                         shares),
                     count, source, true});
}

// Notes classes with fewer samples than folds: some folds have no such sample in their test part.
void note_rare_classes(const SplitOptions& o, const SampleMarks& marks, const Samples& samples,
                       Notes& notes) {
  if (o.folds == 0 || o.chronological || !o.group.empty() || !o.stratify.value_or(true)) return;
  std::map<std::int64_t, std::int64_t> counts;
  for (const std::int64_t c : marks.classes)
    if (c >= 0) ++counts[c];
  std::vector<std::string> rare;
  for (const auto& [c, count] : counts)
    if (count < o.folds)
      rare.push_back(at(c) < samples.class_names.size() ? samples.class_names[at(c)]
                                                        : std::to_string(c));
  if (rare.empty()) return;
  notes.push_back(
      {cat(rare.size(), rare.size() == 1 ? " class has" : " classes have",
           " fewer samples than the ", o.folds, " folds, so that some folds test none of ",
           rare.size() == 1 ? "it: " : "them: ", quoted_names(rare)),
       std::ssize(rare), samples.name});
}

}  // namespace

const char* name(Split split) {
  switch (split) {
    case Split::Train:
      return "training";
    case Split::Validation:
      return "validation";
    case Split::Test:
      return "test";
    case Split::All:
      return "all";
  }
  return "all";
}

Parts divide(const SplitOptions& options, std::int64_t samples, const SampleMarks& marks,
             const std::string& name) {
  if (!marks.units.empty()) {
    if (unit_count(marks) < 2 && samples > 1 && (options.folds != 0 || test_share(options) > 0))
      throw make_error<ValueError>(
          FileName{name},
          ": samples of one file or text stay in one part, and all are of one "
          "file or text: name other files for testing (test=), or leave the "
          "test part out (split=0)");
    const Parts of_units = divide(options, unit_count(marks), marks_of_units(marks),
                                  cat(name, " (samples of one file or text count as one)"));
    Parts out;
    out.reserve(marks.units.size());
    for (const std::int64_t unit : marks.units) out.push_back(of_units[at(unit)]);
    return out;
  }
  check(options, marks, name);
  Parts out = !options.group.empty()  ? divide_groups(options, samples, marks, name)
              : options.chronological ? divide_in_time(options, samples, name)
                                      : divide_shuffled(options, samples, marks, name);
  const auto count = [&](Split part) { return std::count(out.begin(), out.end(), part); };
  const bool tests = options.folds != 0 || test_share(options) > 0;
  if (count(Split::Train) == 0 || (tests && count(Split::Test) == 0))
    throw make_error<ValueError>(
        FileName{name}, ": of ", samples,
        options.group.empty() ? " samples, " : " samples in whole groups, ", count(Split::Train),
        " are left for training and ", count(Split::Test),
        " for testing: choose other shares or fewer folds, or leave the test part out "
        "(split=0)");
  return out;
}

std::vector<std::int64_t> samples_of(const Parts& parts, Split part) {
  Indices out;
  for (std::int64_t i = 0; i < std::ssize(parts); ++i)
    if (part == Split::All || parts[at(i)] == part) out.push_back(i);
  return out;
}

std::pair<double, double> checked_shares(const SplitOptions& o, const std::string& name) {
  const auto share = [&](double value, const char* what) {
    if (!(value >= 0 && value < 1))
      throw make_error<ValueError>(FileName{name}, ": the ", what, " part's share is ", value,
                                   ", must be at least 0 and less than 1");
    return value;
  };
  if ((o.folds != 0 || o.fold != 0) && (o.folds < 2 || o.fold < 1 || o.fold > o.folds))
    throw make_error<ValueError>(FileName{name}, ": fold ", o.fold, " of ", o.folds,
                                 ": there are 2 folds or more, numbered from 1");
  if (o.folds != 0 && o.test)
    throw make_error<ValueError>(FileName{name},
                                 ": a fold is the test part: leave out the test part's share");
  return {share(test_share(o), "test"), share(validation_share(o), "validation")};
}

SplitOptions without_test(const SplitOptions& options, const std::string& name) {
  if (options.test.value_or(0) > 0 || options.folds != 0)
    throw make_error<ValueError>(FileName{name},
                                 ": the test part has files of its own: leave out how to divide it",
                                 options.folds != 0 ? " (the fold)" : " off (its share)");
  SplitOptions out = options;
  out.test = 0;
  return out;
}

Division::Division(const SplitOptions& options, Samples samples)
    : samples_(std::move(samples)), options_(adapted(options)) {
  for (std::int64_t i = 0; i < samples_.count; ++i)
    if (samples_.fixed_parts.empty() || !samples_.fixed_parts[at(i)]) divided_.push_back(i);
  marks_ = marks_of(samples_.marks, divided_);
}

SplitOptions Division::adapted(const SplitOptions& options) const {
  SplitOptions how =
      has_fixed_part(samples_, Split::Test) ? without_test(options, samples_.name) : options;
  if (!has_fixed_part(samples_, Split::Validation)) return how;
  if (options.validation.value_or(0) > 0)
    throw make_error<ValueError>(FileName{samples_.name},
                                 ": the validation part has files of its own: leave out its share");
  how.validation = 0;
  return how;
}

const Parts& Division::parts_of_divided() const {
  const std::lock_guard lock(mutex_);
  if (!parts_) parts_ = divide(options_, std::ssize(divided_), marks_, samples_.name);
  return *parts_;
}

Chosen Division::choose(Split part) const {
  Chosen out;
  out.parts = samples_.fixed_parts.empty() ? Parts(at(samples_.count)) : samples_.fixed_parts;
  // A request for all samples succeeds even if they are too few for parts.
  const std::int64_t needed =
      options_.folds == 0 ? 2 : options_.folds + (options_.chronological ? 1 : 0);
  const bool too_few = part == Split::All && count_to_divide(options_, divided_, marks_) < needed;
  if (too_few) checked_shares(options_, samples_.name);
  const Parts all_train(too_few ? divided_.size() : 0, Split::Train);
  const Parts& parts = too_few ? all_train : parts_of_divided();
  for (std::size_t k = 0; k < divided_.size(); ++k) out.parts[at(divided_[k])] = parts[k];
  out.samples = samples_of(out.parts, part);
  if (!too_few && part != Split::All) {
    note_wholes(options_, parts, marks_, samples_.name, out.notes);
    note_rare_classes(options_, marks_, samples_, out.notes);
  }
  const Notes of_classes = notes_of_classes(samples_.name, part, samples_.marks.classes,
                                            out.samples, samples_.class_names);
  out.notes.insert(out.notes.end(), of_classes.begin(), of_classes.end());
  return out;
}

Chosen choose_samples(const SplitOptions& options, Split part, const Samples& samples) {
  return Division(options, samples).choose(part);
}

Notes notes_of_classes(const std::string& source, Split part, const Indices& classes,
                       const Indices& own, const std::vector<std::string>& class_names) {
  if (classes.empty() || own.empty() || part == Split::All) return {};
  const std::vector<std::string> missing = lacking(classes, own, class_names);
  if (missing.empty()) return {};
  const bool one = missing.size() == 1;
  return {{cat("the ", name(part), " part has no sample of ", missing.size(),
               one ? " class that another part has: " : " classes that another part has: ",
               quoted_names(missing)),
           std::ssize(missing), source}};
}

OrderOfTimes order_of_times(const std::vector<double>& times, const Parts& parts) {
  OrderOfTimes out;
  Indices timed;
  for (std::int64_t i = 0; i < std::ssize(times); ++i)
    if (parts[at(i)] && !std::isnan(times[at(i)])) timed.push_back(i);
  const auto found = [&](std::int64_t& count, std::int64_t samples, std::int64_t first) {
    if (count == 0) out.first = first;
    count += samples;
  };
  for (std::size_t k = 1; k < timed.size(); ++k)
    if (times[at(timed[k])] < times[at(timed[k - 1])]) found(out.earlier, 1, timed[k]);
  if (out.earlier > 0) return out;
  // Equal times follow one another.
  for (std::size_t from = 0, to = 0; from < timed.size(); from = to) {
    bool apart = false;
    for (; to < timed.size() && times[at(timed[to])] == times[at(timed[from])]; ++to)
      apart = apart || parts[at(timed[to])] != parts[at(timed[from])];
    if (apart) found(out.shared, static_cast<std::int64_t>(to - from), timed[from]);
  }
  return out;
}

std::string of_files(const std::string& file, const std::string& test_file, Split part) {
  if (test_file.empty() || part == Split::Train || part == Split::Validation) return file;
  return part == Split::Test ? test_file : cat(file, " and ", test_file);
}

Indices numbers_of_words(const std::vector<std::string_view>& words) {
  // Each slot holds the index of a word's first occurrence; a node for each word would take twice
  // the time and memory.
  constexpr std::int64_t kFree = -1;
  const std::size_t mask = std::bit_ceil(2 * words.size() + 1) - 1;
  Indices slots(mask + 1, kFree), out;
  out.reserve(words.size());
  std::int64_t distinct = 0;
  for (std::size_t k = 0; k < words.size(); ++k) {
    std::size_t slot = std::hash<std::string_view>()(words[k]) & mask;
    while (slots[slot] != kFree && words[at(slots[slot])] != words[k]) slot = (slot + 1) & mask;
    if (slots[slot] != kFree) {
      out.push_back(out[at(slots[slot])]);
      continue;
    }
    slots[slot] = static_cast<std::int64_t>(k);
    out.push_back(distinct++);
  }
  return out;
}

}  // namespace tenon::data

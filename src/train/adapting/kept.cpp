// Cache keys, computation of the frozen layers' outputs, and the dataset that serves them.
#include "train/adapting/kept.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <tenon/compute.h>
#include <tenon/context.h>
#include <tenon/error.h>
#include <tenon/images.h>
#include <tenon/system.h>

#include "base/digest.h"
#include "base/index.h"
#include "base/str.h"
#include "data/samples/derived_dataset.h"
#include "data/samples/sample_pieces.h"
#include "train/adapting/frozen.h"
#include "train/adapting/kept_file.h"
#include "train/batches/batches.h"
#include "train/batches/device_text.h"

namespace tenon::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostInMemory = std::int64_t{4} << 30;
// Independent of the training batch size, which must not change the bits of kept outputs.
constexpr std::int64_t kBatch = 16;
constexpr double kWorthKeeping = 1;        // seconds of computing
constexpr float kLargestExact = 16777216;  // float32 represents all integers up to this one

struct Stopped {};

class KeptSet final : public data::DerivedDataset {
 public:
  KeptSet(std::vector<std::shared_ptr<const KeptRecords>> variants,
          const std::shared_ptr<const data::Dataset>& of, const Shape& shape, bool in_memory)
      : DerivedDataset(info_of(of->info(), shape, in_memory), {of}),
        variants_(std::move(variants)) {}

 private:
  static data::DatasetInfo info_of(data::DatasetInfo info, const Shape& shape, bool in_memory) {
    info.input_shape = shape;
    info.input_dtype = DType::Float32;
    info.in_memory = in_memory;
    return info;
  }
  bool changes_samples() const override { return true; }
  bool augments() const override { return variants_.size() > 1; }
  void write(std::span<const std::int64_t> indices, const Version& version, void* inputs,
             void* targets) const override {
    const std::int64_t variant = version.augmented ? version.epoch % std::ssize(variants_) : 0;
    take(*variants_[at(variant)], indices, inputs, targets);
  }
  void take(const KeptRecords& from, std::span<const std::int64_t> indices, void* inputs,
            void* targets) const {
    const std::size_t of_input = data::input_bytes(info()), of_target = data::target_bytes(info());
    auto* input = static_cast<std::byte*>(inputs);
    auto* target = static_cast<std::byte*>(targets);
    for (const std::int64_t index : indices) {
      const std::byte* record = from.at(index);
      std::memcpy(input, record, of_input);
      std::memcpy(target, record + of_input, of_target);
      input += of_input;
      target += of_target;
    }
    from.require_whole();
  }

  std::vector<std::shared_ptr<const KeptRecords>> variants_;
};

std::string text_of(const data::LoaderOptions& o) {
  std::string out = cat(o.scale ? 1 : 0, " ", o.mean, " ", o.std);
  for (const double mean : o.channel_mean) out += cat(" ", mean);
  for (const double std : o.channel_std) out += cat("/", std);
  return out;
}

// Adds the content of image files, or of the samples, to a digest.
void add_examples(Digester& out, const data::Dataset& set) {
  out.add(cat(set.size(), set.input_dtype(), set.input_shape(), set.target_dtype(),
              set.target_shape()));
  if (const auto images = set.images()) {
    for (std::int64_t k = 0; k < images->size(); ++k) {
      out.add(static_cast<std::uint64_t>(images->label(k)));
      try {
        out.add(images->bytes(k));
      } catch (const IoError&) {
        out.add("unreadable");  // the loader takes another image instead, or reports an error
      }
    }
    return;
  }
  data::for_each_piece(set, [&](std::string_view inputs, std::string_view targets, const auto&) {
    out.add(inputs);
    out.add(targets);
  });
}

// The computation of one dataset, with its augmented variants.
struct Job {
  const KeptSource* source = nullptr;
  int variants = 1;
  bool drawn = false;
  Digest examples;                                         // set if outputs may be on disk
  std::vector<std::shared_ptr<const KeptRecords>> have{};  // by variant; null: to be computed
};

class Keeper {
 public:
  Keeper(FrozenNet net, const FrozenValues& values, const KeepOptions& options)
      : values_(values),
        options_(options),
        folder_(options.folder, options.limit),
        part_(
            compile([net](const std::vector<Tensor>& in) mutable { return net.numbers(in[0]); })) {}

  KeptPart keep(std::vector<Job> jobs);

 private:
  std::size_t record_bytes(const data::Dataset& set) const {
    return at(values_.count() * set.views()) * sizeof(float) + data::target_bytes(set.info());
  }
  std::int64_t bytes_of(const Job& job) const {
    return static_cast<std::int64_t>(record_bytes(*job.source->set)) * job.source->set->size();
  }
  // The shape of a sample's outputs, with an axis of views if there are several.
  Shape shape_of(const data::Dataset& set) const {
    if (set.views() == 1) return values_.shape();
    Ints sizes{set.views()};
    for (const std::int64_t size : values_.shape()) sizes.push_back(size);
    return Shape(sizes.data(), static_cast<int>(sizes.size()));
  }
  Digest key_of(const Job& job, int variant) const;
  void look_up(Job& job);
  std::shared_ptr<const KeptRecords> compute(const Job& job, int variant);
  template <class F>
  void each_batch(const Job& job, int variant, F&& take);
  std::string what_was_done(const std::vector<Job>& jobs, std::int64_t found) const;

  const FrozenValues& values_;
  const KeepOptions& options_;
  KeptFolder folder_;
  CompiledFunction part_;
  bool on_disk_ = false, in_memory_ = false;  // where outputs are kept
  bool written_ = false;
  std::int64_t done_ = 0, to_compute_ = 0;
  std::vector<std::string> notes_;
};

Digest Keeper::key_of(const Job& job, int variant) const {
  Digester out;
  for (const std::string& text :
       {std::string("frozen 2"), std::string(version()), device_text(),
        std::string(name(precision())), job.source->preparation, text_of(job.source->loader)})
    out.add(text);
  if (job.drawn) {
    const data::Augmentation& plain = job.source->loader.augment;
    out.add(cat(plain.crop, " ", plain.flip ? 1 : 0, " ", plain.cutout, " ",
                job.source->loader.seed, " ", variant));
  }
  for (const Digest& digest : {values_.computed_by, job.examples}) {
    out.add(digest.lo);
    out.add(digest.hi);
  }
  return out.result();
}

void Keeper::look_up(Job& job) {
  job.have.resize(at(job.variants));
  if (!on_disk_) return;
  Digester examples;
  add_examples(examples, *job.source->set);
  job.examples = examples.result();
  for (int k = 0; k < job.variants; ++k) {
    std::string why;
    job.have[at(k)] =
        folder_.read(key_of(job, k), job.source->set->size(), record_bytes(*job.source->set), why);
    if (!why.empty()) notes_.push_back(cat("the frozen part is recomputed: ", why));
  }
}

// Computes records batch by batch: the outputs of the frozen parts for samples, and the targets.
template <class F>
void Keeper::each_batch(const Job& job, int variant, F&& take) {
  const data::Dataset& set = *job.source->set;
  data::LoaderOptions o = job.source->loader;
  o.batch = kBatch;
  o.shuffle = o.drop_last = false;
  o.sampling = {};
  if (!job.drawn) o.augment = {};
  data::Loader examples(job.source->set, o);
  if (job.drawn) examples.set_epoch(variant);
  const std::size_t bytes = record_bytes(set),
                    of_input = at(values_.count() * set.views()) * sizeof(float),
                    of_target = bytes - of_input;
  std::vector<std::byte> records;
  for (data::Batch batch; examples.next(batch);) {
    const std::vector<Tensor> given =
        part_({set.views() > 1 ? views_as_examples(batch.input).compute() : batch.input});
    if (given[1].item() >= static_cast<double>(kLargestExact))
      throw NotSupported("one of its outputs has integers that float32 cannot represent exactly");
    records.resize(bytes * at(batch.size));
    const auto* input = static_cast<const std::byte*>(given[0].data());
    const auto* target = static_cast<const std::byte*>(batch.target.data());
    for (std::int64_t k = 0; k < batch.size; ++k) {
      std::memcpy(records.data() + at(k) * bytes, input + at(k) * of_input, of_input);
      std::memcpy(records.data() + at(k) * bytes + of_input, target + at(k) * of_target, of_target);
    }
    take(std::span<const std::byte>(records));
    done_ += batch.size;
    if (options_.progress) options_.progress(done_, to_compute_);
    if (options_.stop && options_.stop()) throw Stopped();
  }
}

std::shared_ptr<const KeptRecords> Keeper::compute(const Job& job, int variant) {
  const data::Dataset& set = *job.source->set;
  const std::size_t bytes = record_bytes(set);
  const Digest key = on_disk_ ? key_of(job, variant) : Digest();
  // The outputs of a dataset with broken images do not stay on disk. Every run must read these
  // images again to report them.
  const auto write = [&](auto&& fill) {
    folder_.make_room(bytes_of(job));
    KeptWriter file(folder_, key, set.size(), bytes);
    fill(file);
    file.commit();
    written_ = true;
  };
  if (!in_memory_) {
    write([&](KeptWriter& file) {
      each_batch(job, variant, [&file](std::span<const std::byte> records) { file.add(records); });
    });
    std::string why;
    auto records = folder_.read(key, set.size(), bytes, why);
    if (records == nullptr) throw KeptError(why);
    if (set.any_broken()) folder_.remove(key);
    return records;
  }
  const Clock::time_point start = Clock::now();
  std::vector<std::byte> all;
  all.reserve(bytes * at(set.size()));
  each_batch(job, variant, [&all](std::span<const std::byte> records) {
    all.insert(all.end(), records.begin(), records.end());
  });
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (on_disk_ && seconds >= kWorthKeeping && !set.any_broken()) {
    try {
      write([&all](KeptWriter& file) { file.add(all); });
    } catch (const KeptError& error) {
      notes_.push_back(
          cat("outputs of the frozen part are not kept for later runs: ", error.what()));
    }
  }
  return std::make_shared<const KeptRecords>(std::move(all), bytes);
}

std::string Keeper::what_was_done(const std::vector<Job>& jobs, std::int64_t found) const {
  std::int64_t examples = 0, bytes = 0, all = 0;
  for (const Job& job : jobs) {
    examples += job.source->set->size();
    all += job.source->set->size() * job.variants;
    bytes += bytes_of(job) * job.variants;
  }
  std::string of = cat("of ", examples, " samples ");
  const std::int64_t training = jobs[0].source->set->size();
  if (jobs[0].variants > 1)
    of = cat("of ", jobs[0].variants, " variants of ", training, " samples",
             examples > training ? cat(", and of ", examples - training, " to be measured, ")
                                 : std::string(" "));
  else if (jobs[0].drawn)
    of = cat("of one variant of ", examples, " samples ");
  const std::string size = size_text(bytes);
  if (found == all)
    return cat("the frozen part was computed by an earlier run: ", of, size, " are read from ",
               folder_.path());
  return cat("the frozen part is computed once: ", of, size, " are kept in ",
             in_memory_ ? "memory" : folder_.path(),
             in_memory_ && written_ ? cat(", and in ", folder_.path(), " for later runs") : "",
             found > 0 ? cat("; those of ", found, " were there from an earlier run") : "");
}

KeptPart Keeper::keep(std::vector<Job> jobs) {
  KeptPart out;
  std::int64_t bytes = 0;
  for (const Job& job : jobs) bytes += bytes_of(job) * job.variants;
  in_memory_ = options_.place != KeepPlace::Disk && bytes <= kMostInMemory;
  on_disk_ = options_.place != KeepPlace::Memory && bytes <= options_.limit;
  if (!in_memory_ && !on_disk_) {
    out.notes.push_back(cat("the frozen part is computed in every step: kept, it would take ",
                            size_text(bytes), ", where ", size_text(kMostInMemory),
                            " are kept in memory and ", size_text(options_.limit),
                            " on disk ('frozen_cache')"));
    return out;
  }
  std::int64_t found = 0;
  for (Job& job : jobs) {
    look_up(job);
    for (const auto& records : job.have)
      (records != nullptr ? found : to_compute_) += job.source->set->size();
  }
  if (options_.progress && to_compute_ > 0) options_.progress(0, to_compute_);
  for (Job& job : jobs)
    for (int k = 0; k < job.variants; ++k)
      if (job.have[at(k)] == nullptr) job.have[at(k)] = compute(job, k);
  notes_.push_back(what_was_done(jobs, found));
  out.notes = std::move(notes_);
  for (Job& job : jobs)
    out.sets.push_back(std::make_shared<const KeptSet>(
        std::move(job.have), job.source->set, shape_of(*job.source->set), bytes <= kMostInMemory));
  return out;
}

}  // namespace

KeptPart keep_frozen_part(const nn::AnyModule& net, const std::vector<KeptSource>& sources,
                          const KeepOptions& options) {
  constexpr char kEveryStep[] = "the frozen part is computed in every step: ";
  KeptPart out;
  const auto* found = net.as<FrozenNet>();
  if (found == nullptr) throw InternalError("freeze: the network has no frozen parts");
  FrozenNet frozen = *found;
  const KeptSource& train = sources.front();
  const bool drawn = train.loader.augment.any() || train.set->is_augmented();
  if (drawn && options.variants == 0) {
    out.notes.push_back(cat(kEveryStep,
                            "augmentation changes its input (--frozen-variants 8 computes it once "
                            "for each of eight variants of a sample)"));
    return out;
  }
  // A separate generator, so that draws here do not change the run's random numbers.
  Context context = current_context();
  context.generator = Generator(0);
  const ContextScope scope(context);
  const data::Loader loader(train.set, train.loader);
  std::string why;
  const std::optional<FrozenValues> values =
      frozen.values(loader.input_shape(), loader.input_dtype(), why);
  if (!values) {
    out.notes.push_back(kEveryStep + why);
    return out;
  }
  std::vector<Job> jobs{{&train, drawn ? options.variants : 1, drawn, {}}};
  for (std::size_t k = 1; k < sources.size(); ++k) jobs.push_back({&sources[k], 1, false, {}});
  try {
    out = Keeper(frozen, *values, options).keep(std::move(jobs));
  } catch (const Stopped&) {
    return {};
  } catch (const KeptError& error) {
    out.notes.push_back(cat(kEveryStep, error.what()));
  } catch (const NotSupported& error) {
    out.notes.push_back(cat(kEveryStep, error.what()));
  }
  if (!out.sets.empty()) out.net = frozen.behind(loader.input_shape(), loader.input_dtype());
  return out;
}

}  // namespace tenon::train

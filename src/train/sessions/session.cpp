// Builds the objects of a run from its settings.
#include "train/sessions/session.h"

#include <algorithm>
#include <future>
#include <memory>
#include <unordered_set>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/tokenizer.h>

#include <tenon/shapes_only.h>

#include "base/background.h"
#include "base/digest.h"
#include "base/str.h"
#include "base/system/cache_file.h"
#include "data/loading/prefetch.h"
#include "data/samples/not_finite_samples.h"
#include "graph/on_host.h"
#include "io/file.h"
#include "optim/warmup.h"
#include "train/adapting/frozen.h"
#include "train/adapting/kept.h"
#include "train/adapting/lora.h"
#include "train/adapting/standardized.h"
#include "train/runs/class_names.h"
#include "train/runs/model_file.h"
#include "train/runs/run_folder.h"
#include "train/settings/images.h"
#include "train/settings/published.h"
#include "train/settings/registered.h"

namespace tenon::train {
namespace {

constexpr std::int64_t kTestBatch = 250;

data::LoaderOptions loader_options(const ResolvedModel& model) {
  const Settings& s = model.settings;
  data::LoaderOptions o;
  o.batch = s.batch;
  o.shuffle = s.shuffle;
  o.drop_last = s.drop_last;
  o.seed = static_cast<std::uint64_t>(s.seed);
  // For many networks, decoding an image takes longer than a training step.
  o.workers = model.images.any_size ? image_workers(s) : std::max(s.workers, 1);
  o.mean = s.input_mean;
  o.std = s.input_std;
  const ChannelScale& channels = channel_scale(model);
  o.channel_mean = channels.mean;
  o.channel_std = channels.std;
  return o;
}

// A network that reads tokens must have an input for each token of the tokenizer.
void check_vocabulary(const Settings& settings, const models::Info& model,
                      const data::Tokenizer* tokenizer) {
  if (tokenizer == nullptr && model.vocabulary > 0)
    throw ValueError(cat("model '", settings.model,
                         "' needs a tokenizer: give one, as in --tokenizer vocab.txt"));
  if (!settings.tokenizer.empty() && !model.takes_tokens())
    throw ValueError(cat("setting 'tokenizer' is '", settings.tokenizer, "', but model '",
                         settings.model, "' takes no text"));
  if (tokenizer == nullptr) return;
  if (tokenizer->size() > model.input_tokens(tokenizer->size()))
    throw ValueError(cat(
        "the tokenizer has ", tokenizer->size(), " tokens, model '", settings.model, "' ",
        model.vocabulary,
        settings.network.empty()
            ? cat(": give it so many, as in ", settings.model.substr(0, settings.model.find(':')),
                  ":vocabulary=", tokenizer->size())
            : cat(": write vocabulary = ", tokenizer->size(), " in the file")));
}

}  // namespace

Context context_of(const ResolvedModel& model) {
  const ComputeSettings& compute = model.compute;
  Context context = current_context();
  context.device = device(model.settings.device);
  if (compute.threads > 0) context.threads = compute.threads;
  context.precision = compute.precision;
  context.tune = compute.tune;
  context.generator = Generator(compute.seed);
  return context;
}

std::shared_ptr<const data::Tokenizer> tokenizer_of(const Settings& settings,
                                                    const std::string& run_dir) {
  if (settings.tokenizer.empty())
    return nullptr;  // a tokenizer.json in the folder is not from this run
  const std::string own = cat(run_dir, "/", kTokenizerFile);
  const bool kept = !run_dir.empty() && io::file_exists(own);
  return std::make_shared<const data::Tokenizer>(
      data::Tokenizer::open(kept ? own : settings.tokenizer));
}

data::SourceOptions source_options(const ResolvedModel& model,
                                   std::shared_ptr<const data::TableColumns> columns,
                                   std::shared_ptr<const data::Tokenizer> tokenizer) {
  data::SourceOptions out{.columns = std::move(columns), .tokenizer = std::move(tokenizer)};
  model.task->set_reading(out);
  return out;
}

namespace {

// After one NaN input, a network computes only NaN, whatever the learning rate. The task checks the
// targets.
void require_finite_inputs(const data::Dataset& set, data::Split part, const std::string& data) {
  if (!set.in_memory()) return;  // the first step that reads such a sample reports it
  const data::NotFiniteSamples found = data::not_finite_samples(set);
  if (found.inputs > 0) data::refuse_not_finite(found, part, data);
}

// Null if the source has no such part.
std::shared_ptr<const data::Dataset> open_part(const ResolvedRun& run, const data::Source& source,
                                               data::Split part) {
  const std::shared_ptr<data::Dataset> set = source.open(part);
  if (set == nullptr) return nullptr;
  if (run.settings.strict) refuse_notes(set->notes());
  require_finite_inputs(*set, part, run.settings.data);
  return fitted(run, set, part);
}

}  // namespace

DataSets open_data(const ResolvedRun& run, const std::string& run_dir) {
  const Settings& settings = run.settings;
  const models::Info& model = run.info();
  const auto tokenizer = tokenizer_of(settings, run_dir);
  check_vocabulary(settings, model, tokenizer.get());
  data::SourceOptions how = source_options(run, nullptr, tokenizer);
  how.strict = settings.strict;
  const data::Source source(settings.data, how);
  // Opens the parts in parallel. The first step waits for all parts, so that an unreadable test
  // part is found at the beginning of a run.
  const auto ahead = [&run, &source](data::Split part) {
    return in_background([&run, &source, part] { return open_part(run, source, part); });
  };
  auto validation = ahead(data::Split::Validation), test = ahead(data::Split::Test);
  DataSets sets;
  sets.tokenizer = tokenizer;
  sets.train = open_part(run, source, data::Split::Train);
  if (sets.train == nullptr)
    throw ValueError(cat("'", settings.data, "' has no samples for training"));
  sets.validation = validation.get();
  sets.test = test.get();
  for (const auto& [set, part] : {std::pair(sets.train, data::Split::Train),
                                  std::pair(sets.validation, data::Split::Validation),
                                  std::pair(sets.test, data::Split::Test)})
    if (set != nullptr) run.task->check_data({settings, model, *set}, part);
  return sets;
}

// The trainable parameters in groups: first those with the optimizer's rate, then a group for each
// layer of `rate_of`. A second set of such groups has the parameters named in `later`, which become
// trainable in a later stage. If layers are nested, the innermost rate is used.
optim::Parameters parameters_by_rate(const nn::AnyModule& net, const ResolvedRun& run,
                                     const std::vector<std::string>& later) {
  const Settings& settings = run.settings;
  const std::vector<std::pair<std::string, double>>& rates = run.optimizer.rates;
  const std::size_t each = 1 + rates.size();
  std::vector<optim::ParameterGroup> groups(2 * each);
  for (std::size_t k = 0; k < rates.size(); ++k)
    groups[1 + k].lr = groups[each + 1 + k].lr = settings.lr * rates[k].second;
  const std::unordered_set<std::string> of_later(later.begin(), later.end());
  std::vector<bool> met(rates.size(), false);
  const auto group_of = [&](const std::string& name) {
    std::size_t group = 0, longest = 0;
    for (std::size_t k = 0; k < rates.size(); ++k) {
      const std::string& part = rates[k].first;
      const bool within = name == part || name.starts_with(part + ".");
      if (!within) continue;
      met[k] = true;
      if (part.size() >= longest) group = 1 + k, longest = part.size();
    }
    return group;
  };
  for (const nn::NamedTensor& p : net.named_trainable_parameters())
    groups[group_of(p.name) + (of_later.contains(p.name) ? each : 0)].parameters.push_back(p);
  for (std::size_t k = each; k < groups.size(); ++k) groups[k].own_steps = true;
  // A rate may belong to a layer that is still frozen.
  if (run.frozen.until_epoch > 0)
    for (const std::string& name : later) group_of(name);
  for (std::size_t k = 0; k < rates.size(); ++k) {
    if (met[k]) continue;
    std::vector<std::string> names;
    for (const auto& [name, child] : net.children()) names.push_back(name);
    std::string all;
    for (const std::string& name : names) all += cat(all.empty() ? "" : ", ", name);
    const std::string near = nearest(rates[k].first, names.data(), static_cast<int>(names.size()));
    throw ValueError(cat("setting 'rate_of': no trainable parameter is in '", rates[k].first, "'",
                         near.empty() ? "." : cat("; did you mean '", near, "'?"), " The parts of ",
                         settings.model, " are ", all, ", and those within them ('tenon summary ",
                         settings.model, "')"));
  }
  // Remove groups without parameters.
  std::erase_if(groups, [](const optim::ParameterGroup& g) { return g.parameters.empty(); });
  return groups;
}

// Augmentation moves the pixels of an image, but cannot move targets that belong to pixels.
void check_augmentation(const ResolvedRun& run, const data::Dataset& set) {
  const bool moves = run.augmentation.plain.any() || run.augmentation.steps.any();
  if (!moves || set.target_shape().rank() < 2) return;
  throw ValueError(cat("setting 'augment' is '", run.settings.augment, "', but a target of '",
                       run.settings.data, "' is ", set.target_shape(),
                       ", and augmentation transforms images only: set augment to 'none'"));
}

// Checks that the network's outputs fit the data, before the run folder is created.
void Session::check_outputs(const data::Dataset& set) const {
  if (run.info().takes_tokens()) return;
  Shape batch{2};
  for (std::int64_t size : set.input_shape()) batch.push_back(size);
  const std::vector<Shape> outputs = net.summary(batch).outputs;
  run.task->check_outputs({run.settings, run.info(), set},
                          outputs.size() == 1 ? outputs[0] : Shape());
}

nn::Loss loss_of(const ResolvedModel& model, const nn::AnyModule& net, double label_smoothing) {
  const TaskNetwork network{model.settings, model.info(), net, label_smoothing};
  const std::string& own = model.settings.loss;
  return own.empty() ? model.task->loss(network) : registered_loss(own, network);
}

nn::AnyModule make_net(const ResolvedModel& model, std::int64_t classes) {
  const Settings& settings = model.settings;
  nn::AnyModule net = model.network.create({classes, settings.activation, {}, settings.head});
  for (const auto& [layer, precision] : model.compute.layer_precision)
    net.set_precision(precision, layer);
  return net;
}

namespace {

const LoraOptions& lora_of(const ResolvedRun& run) {
  const Settings& settings = run.settings;
  const LoraOptions& options = *run.lora;
  // The layers of a new head have random weights: they are trained in full, because adapters would
  // keep the random weights.
  if (!settings.head.empty() && options.learn.empty())
    throw ValueError(cat("setting 'lora' is '", settings.lora, "' and 'head' is '", settings.head,
                         "', whose layers must be trained in full: name them, as in '",
                         settings.lora, ",learn=classifier'"));
  return options;
}

}  // namespace

namespace {

void check_unfreezing(const Settings& settings, const nn::AnyModule& net) {
  const auto* frozen = net.as<FrozenNet>();
  if (frozen == nullptr)
    throw ValueError(cat("setting 'unfreeze_after' is ", settings.unfreeze_after,
                         ", but no layer is frozen: name layers, as in --freeze features"));
  if (frozen->names_of_frozen().empty())
    throw ValueError(cat("setting 'unfreeze_after' is ", settings.unfreeze_after, ", but '",
                         settings.freeze, "' has no trainable parameter in ", settings.model));
}

// A note on requested precisions that only a GPU has.
std::string note_on_precision(const ResolvedRun& run) {
  std::vector<Precision> asked{run.compute.precision};
  for (const auto& [layer, precision] : run.compute.layer_precision) asked.push_back(precision);
  std::string names;
  for (const Precision precision : {Precision::Tf32, Precision::Fp16})
    if (std::find(asked.begin(), asked.end(), precision) != asked.end())
      names += cat(names.empty() ? "" : " and ", name(precision));
  return names.empty() ? "" : cat("precision: the CPU computes ", names, " products in fp32");
}

// A difference of one step is due to rounding, for example half an epoch of an odd number of steps.
std::string note_on_warm_up(const ResolvedRun& run, std::int64_t steps_per_epoch) {
  const Settings& settings = run.settings;
  optim::ScheduleOptions o = run.schedule.options;
  o.steps_per_epoch = steps_per_epoch;
  o.total_steps = settings.epochs * steps_per_epoch;
  if (settings.max_steps > 0)
    o.total_steps = std::min<std::int64_t>(o.total_steps, settings.max_steps);
  const auto [wanted, rise] = optim::warm_up(o);
  if (wanted - rise <= 1) return "";
  return cat("warm-up: the learning rate rises for ", rise, rise == 1 ? " step" : " steps",
             ", at most half of the run, although warmup = ", settings.warmup, " asks for ",
             wanted);
}

// Planning needs only shapes, no labels.
data::WeightedSampling sampling_of(const ResolvedRun& run, const data::Dataset& set) {
  const Settings& settings = run.settings;
  if (settings.sampling != "balanced" || ShapesOnly::is_on()) return {};
  const auto refuse = [&](const std::string& why) {
    throw ValueError(cat("setting 'sampling' is 'balanced', but ", why));
  };
  if (!settings.shuffle) refuse("'shuffle' is false: balanced samples have a random order");
  if (run.task->output_form() != OutputForm::Classes || set.classes() < 1 ||
      set.target_shape().rank() != 0)
    refuse(cat("a sample of '", settings.data, "' has no single class: use uniform"));
  return {.weights = data::class_balanced_weights(set)};
}

std::string until_released(const FrozenSettings& frozen) {
  const int epochs = frozen.until_epoch;
  return epochs == 0 ? ""
                     : cat(" until ", epochs, epochs == 1 ? " epoch is" : " epochs are",
                           " done, and learn from then on");
}

}  // namespace

void Session::make_optimizer() {
  const auto* frozen = net.as<FrozenNet>();
  optimizer = optim::create(
      run.optimizer.name,
      parameters_by_rate(
          net, run, frozen != nullptr ? frozen->names_of_frozen() : std::vector<std::string>()),
      run.optimizer.options);
}

void Session::make_loaders() {
  data::LoaderOptions training = loader_options(run);
  training.augment = run.augmentation.plain;
  training.sampling = sampling_of(run, *sets.train);
  train = std::make_unique<data::Loader>(sets.train, training);
  measured_ = sets;
  make_measuring_loaders();
}

void Session::make_measuring_loaders() {
  const auto loader = [this](const std::shared_ptr<const data::Dataset>& set) {
    return set == nullptr ? nullptr : test_loader(run, set, measured_batch_);
  };
  validation = loader(measured_.validation);
  test = loader(measured_.test);
}

void Session::measure_in_batches(std::int64_t batch) {
  measured_batch_ = batch;
  make_measuring_loaders();
}

// The stage after unfreezing: all layers are trained, and the network reads the samples themselves.
Stage Session::unfreeze() {
  const nn::AnyModule whole = FrozenNet(*net.as<FrozenNet>()).released();
  make_optimizer();
  net = whole;
  make_loaders();
  if (tell) tell(cat("from epoch ", run.frozen.until_epoch + 1, " on, ", trainable_summary(net)));
  return {net, optimizer.get(), train.get(), validation.get(), test.get()};
}

Session::Session(const ResolvedRun& resolved, const DataSets& opened, bool resume)
    : run(resolved), sets(opened), net(nn::Identity()), tokenizer(opened.tokenizer) {
  Settings& settings = run.settings;
  const std::int64_t outputs = run.task->outputs(*sets.train);
  if (settings.classes == 0) settings.classes = outputs;
  if (settings.classes < outputs)
    throw ValueError(cat("setting 'classes' is ", settings.classes, ", but '", settings.data,
                         "' has ", outputs));
  check_augmentation(run, *sets.train);
  net = make_net(run, settings.classes);
  check_outputs(*sets.train);
  if (settings.standardize && is_table(*sets.train))
    net = standardized(net, *sets.train, run.task->scales_targets());
  loss = loss_of(run, net, settings.label_smoothing);
  if (!settings.weights.empty() && !resume && !ShapesOnly::is_on()) {
    const TakenWeights taken = take_fitting_weights(net, settings.weights);
    if (settings.strict) refuse_weight_notes(taken.notes, settings.weights, settings.model);
    notes.push_back(
        cat(taken.note, config_words(settings.weights, settings.model),
            settings.head.empty() ? "" : "; the head's layers are initialized randomly"));
  }
  if (run.lora) net = *(adapted = with_adapters(net, lora_of(run)));
  if (!run.frozen.layers.empty()) net = FrozenNet(net, run.frozen.layers);
  if (run.frozen.until_epoch > 0) check_unfreezing(settings, net);
  make_optimizer();
  make_loaders();
  if (!settings.teacher.empty() && !ShapesOnly::is_on()) open_teacher(*sets.train);
  if (!run.frozen.layers.empty() || adapted)
    notes.push_back(cat(trainable_summary(net), until_released(run.frozen)));
  const bool drawn = train->options().sampling.any();
  if (drawn)
    notes.push_back(cat("each epoch draws ", train->epoch_size(),
                        " training samples with replacement, all classes equally often on "
                        "average: training loss and accuracy are of the drawn samples"));
  if (const std::int64_t size = train->epoch_size(); size < settings.batch)
    notes.push_back(cat("each step takes all ", size, drawn ? " drawn" : " training",
                        " samples: they are fewer than a batch of ", settings.batch));
  if (const std::string note = note_on_warm_up(run, train->batches()); !note.empty())
    notes.push_back(note);
  if (current_device().kind == Device::Kind::Cpu)
    if (const std::string note = note_on_precision(run); !note.empty()) notes.push_back(note);
  if (sets.train->images() != nullptr && !ShapesOnly::is_on()) {
    data::ImageOptions options = image_options(run, sets.train->input_shape());
    options.resize = options.resize.middle_only();
    options.augment = run.augmentation.steps;
    const ImagePlace place = place_of_images(settings, options);
    if (!place.about.empty()) {
      notes.push_back(place.about);
      settings.augment_on = place.where;  // kept for the run, also when it is resumed
    }
  }
}

void Session::keep_frozen(const std::optional<Checkpoint>& checkpoint, const RunOptions& watched) {
  const int until = run.frozen.until_epoch;
  if (checkpoint && until > 0 && checkpoint->progress.epochs_in(checkpoint->progress.step) >= until)
    return;  // no layer is frozen any more
  if (checkpoint) net.load_state_dict(checkpoint->model_state());
  const auto in_every_step = [this](const char* why) {
    notes.push_back(cat("the frozen part is computed in every step: ", why));
  };
  if (teacher) return in_every_step("the teacher needs the input");
  if (run.augmentation.mixing.any()) return in_every_step("the images of a batch are mixed");
  if (run.frozen.keep.place == KeepPlace::Nowhere) return in_every_step("keep_frozen is off");
  const auto source = [this](const std::shared_ptr<const data::Dataset>& set,
                             const std::unique_ptr<data::Loader>& loader,
                             const std::string& drawn) {
    KeptSource out{set, loader->options(), {}};
    const ImageSettings& images = run.images;
    out.preparation =
        cat(images.preprocess, " ", images.normalize, " ", images.background, " ", drawn);
    return out;
  };
  KeepOptions how = run.frozen.keep;
  how.folder = cache_folder_of("frozen");
  how.stop = watched.stop;
  how.progress = [&watched](std::int64_t done, std::int64_t examples) {
    for (const auto& callback : watched.callbacks) callback->on_frozen(done, examples);
  };
  std::vector<KeptSource> sources{source(sets.train, train, run.augmentation.steps.text())};
  if (validation != nullptr) sources.push_back(source(sets.validation, validation, ""));
  if (test != nullptr) sources.push_back(source(sets.test, test, ""));
  KeptPart kept = keep_frozen_part(net, sources, how);
  for (std::string& note : kept.notes) notes.push_back(std::move(note));
  if (kept.sets.empty()) return;
  net = kept.net;
  data::LoaderOptions of_kept = train->options();
  of_kept.augment = {};  // the kept outputs already include augmentation
  train = std::make_unique<data::Loader>(kept.sets.front(), of_kept);
  if (validation != nullptr) measured_.validation = kept.sets[1];
  if (test != nullptr) measured_.test = kept.sets.back();
  make_measuring_loaders();
}

namespace {

std::string digest_of_weights(const nn::AnyModule& net) {
  Digester digester;
  for (const auto& [name, tensor] : net.state_dict()) {
    const Tensor host = on_host(tensor);
    digester.add(name);
    digester.add(checksum({static_cast<const char*>(host.data()),
                           static_cast<std::size_t>(host.numel()) * item_size(host.dtype())}));
  }
  return digester.result().hex();
}

std::vector<double> of_channels(const std::vector<double>& each, std::size_t channels) {
  return each.size() == 1 ? std::vector<double>(channels, each[0]) : each;
}

bool same_scale(const ChannelScale& a, const ChannelScale& b) {
  const std::size_t channels = std::max(a.mean.size(), b.mean.size());
  return of_channels(a.mean, channels) == of_channels(b.mean, channels) &&
         of_channels(a.std, channels) == of_channels(b.std, channels);
}

// "0.5 and deviation 0.2", or the values of all channels if they differ.
std::string scale_text(const ChannelScale& scale) {
  const auto text = [](const std::vector<double>& each) {
    if (std::count(each.begin(), each.end(), each.front()) == std::ssize(each))
      return cat(each.front());
    std::string out;
    for (const double value : each) out += cat(out.empty() ? "" : ",", value);
    return out;
  };
  return cat(text(scale.mean), " and deviation ", text(scale.std));
}

}  // namespace

// The teacher's outputs for the run's inputs must be scores for the run's classes.
void Session::open_teacher(const data::Dataset& set) {
  const Settings& settings = run.settings;
  const TrainedModel model = TrainedModel::open(settings.teacher);
  for (const Task* each : {run.task.get(), &model.task()})
    if (!each->takes_teacher())
      throw NotSupported(
          cat("setting 'teacher': distillation needs classes, and this is a ", each->name()));
  const std::vector<std::string> own = class_words(set.class_names());
  const models::Info &given = model.info(), &wanted = run.info();
  const bool takes_them = given.task() == wanted.task() &&
                          (given.tokens || given.input.numel() == wanted.input.numel());
  if (!takes_them || model.settings().classes != settings.classes)
    throw ValueError(cat("setting 'teacher': ", settings.teacher, " (", model.settings().model,
                         ") takes ", given.input, " and knows ", model.settings().classes,
                         " classes, where '", settings.data, "' has ", set.input_shape(), " and ",
                         settings.classes, ": train a teacher on the same data"));
  if (!own.empty() && model.class_names() != own)
    throw ValueError(cat("setting 'teacher': the classes of ", settings.teacher, " (",
                         model.class_names().front(), ", …) differ from those of '", settings.data,
                         "' (", own.front(), ", …), or in another order"));
  const Settings& theirs = model.settings();
  teacher = model.net();
  teacher_digest = digest_of_weights(*teacher);
  // Both networks read the same inputs, so the pixel scaling must be equal.
  const ChannelScale used = pixel_scale(model.resolved()), own_scale = pixel_scale(run);
  if (set.input_dtype() == DType::UInt8 && !same_scale(used, own_scale))
    throw ValueError(cat("setting 'teacher': ", settings.teacher,
                         " was trained on pixels with mean ", scale_text(used), ", this run has ",
                         scale_text(own_scale),
                         ": set normalize, input_mean and input_std to the teacher's"));
  notes.push_back(cat("teacher: ", theirs.model, " from ", model.file(), ", temperature ",
                      settings.temperature, ", weight ", settings.distill_weight));
}

namespace {

optim::Averaging averaging_of(const Settings& settings) {
  if (settings.average == "ema") return optim::ema(settings.average_decay, settings.average_start);
  if (settings.average == "swa") return optim::swa(settings.average_start);
  return {};
}

}  // namespace

TrainOptions Session::options(const std::string& dir, bool resume) {
  const Settings& settings = run.settings;
  TrainOptions o;
  o.epochs = settings.epochs;
  o.max_steps = settings.max_steps;
  o.schedule = run.schedule.name;
  o.schedule_options = run.schedule.options;
  o.clip_norm = settings.clip_norm;
  o.accumulate = settings.accumulate;
  o.averaging = averaging_of(settings);
  o.task = run.task;
  if (settings.label_smoothing > 0) o.evaluation_loss = loss_of(run, net, 0);
  o.stage_epochs = run.frozen.until_epoch;
  if (o.stage_epochs > 0) o.next_stage = [this] { return unfreeze(); };
  o.early_stopping = settings.early_stopping;
  o.keep_best = settings.keep_best;
  o.teacher = teacher;
  o.teacher_digest = teacher_digest;
  o.temperature = settings.temperature;
  o.distill_weight = settings.distill_weight;
  o.mixing = run.augmentation.mixing;
  o.run_dir = dir;
  o.resume = resume;
  o.keep_checkpoints = run.checkpoints.keep;
  o.checkpoint_steps = run.checkpoints.steps;
  o.checkpoint_seconds = run.checkpoints.seconds;
  o.settings_toml = settings.toml();
  o.model_metadata.emplace_back(
      kModelKey,
      to_json({with_preprocess_settings(run), class_words(train->dataset().class_names()),
               train->dataset().text_unit(), train->dataset().table()}));
  if (tokenizer != nullptr) {
    o.tokenizer_json = tokenizer->json();
    o.model_metadata.emplace_back(kTokenizerKey, o.tokenizer_json);
  }
  return o;
}

std::unique_ptr<data::Loader> test_loader(const ResolvedModel& model,
                                          std::shared_ptr<const data::Dataset> set,
                                          std::int64_t batch) {
  data::LoaderOptions o = loader_options(model);
  o.batch = batch > 0 ? batch : std::max<std::int64_t>(kTestBatch / set->views(), 1);
  o.shuffle = o.drop_last = false;
  // Without gradients a batch takes little time, so reading and decoding are the bottleneck.
  o.workers = std::max(o.workers, std::min(threads(), data::kMostWorkers));
  return std::make_unique<data::Loader>(std::move(set), o);
}

}  // namespace tenon::train

// Builds the objects of a run from its settings.
#include "train/session.h"

#include <algorithm>
#include <future>
#include <memory>
#include <unordered_set>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>

#include <tenon/shapes_only.h>

#include "base/background.h"
#include "base/cache_file.h"
#include "base/digest.h"
#include "base/str.h"
#include "data/prefetch.h"
#include "data/span_dataset.h"
#include "graph/on_host.h"
#include "io/file.h"
#include "optim/warmup.h"
#include "train/class_names.h"
#include "train/frozen.h"
#include "train/images.h"
#include "train/kept.h"
#include "train/lora.h"
#include "train/model_file.h"
#include "train/published_config.h"
#include "train/run_folder.h"
#include "train/settings.h"
#include "train/standardized.h"

namespace tenon::train {
namespace {

constexpr std::int64_t kTestBatch = 250;
constexpr char kRegression[] = "regression";

data::LoaderOptions loader_options(const Settings& s) {
  data::LoaderOptions o;
  o.batch = s.batch;
  o.shuffle = s.shuffle;
  o.drop_last = s.drop_last;
  o.seed = static_cast<std::uint64_t>(s.seed);
  // Decoding takes longer than a step of many networks.
  o.workers = own_sizes(s) ? image_workers(s) : std::max(s.workers, 1);
  o.mean = s.input_mean;
  o.std = s.input_std;
  const ChannelScale channels = channel_scale(s);
  o.channel_mean = channels.mean;
  o.channel_std = channels.std;
  return o;
}

optim::OptimizerOptions optimizer_options(const Settings& s) {
  optim::OptimizerOptions o;
  o.lr = s.lr;
  o.weight_decay = s.weight_decay;
  if (s.optimizer == "sgd" || s.optimizer == "rmsprop") o.momentum = s.momentum;
  if (s.optimizer.starts_with("adam")) o.beta2 = s.beta2;
  if (s.optimizer.starts_with("adam") || s.optimizer == "levenberg") o.eps = s.eps;
  o.nesterov = s.nesterov;
  return o;
}

// A model that translates takes pairs of any length.
void check_pairs(const Settings& settings, const data::Dataset& set) {
  const Shape input = set.input_shape();
  if (input.rank() == 2 && input[0] == 2 && set.input_dtype() == DType::Int64 &&
      set.target_shape() == Shape{input[1]} && set.classes() > 0)
    return;
  throw ShapeError(cat("model '", settings.model, "' needs pairs of texts, but a sample of '",
                       settings.data, "' is ", set.input_dtype(), " ", input,
                       ": use the data source numbers, or a file, as in --data pairs:FILE"));
}

// What reads text by a tokenizer must have a place for each of its tokens.
void check_vocabulary(const Settings& settings, const models::Info& model,
                      const data::Tokenizer* tokenizer) {
  if (tokenizer == nullptr && model.vocabulary > 0)
    throw ValueError(cat("model '", settings.model,
                         "' needs a tokenizer: give one, as in --tokenizer vocab.txt"));
  if (!settings.tokenizer.empty() && !model.takes_tokens())
    throw ValueError(cat("setting 'tokenizer' is '", settings.tokenizer, "', but model '",
                         settings.model, "' takes no text"));
  if (tokenizer == nullptr || model.masked || model.vocabulary == 0) return;
  if (tokenizer->size() > model.vocabulary)
    throw ValueError(cat(
        "the tokenizer has ", tokenizer->size(), " tokens, model '", settings.model, "' ",
        model.vocabulary,
        settings.network.empty()
            ? cat(": give it so many, as in ", settings.model.substr(0, settings.model.find(':')),
                  ":vocabulary=", tokenizer->size())
            : cat(": write vocabulary = ", tokenizer->size(), " in the file")));
}

// Questions behind which parts of texts stand, in tokens.
void check_spans(const Settings& settings, const data::Dataset& set, const Shape& context) {
  if (dynamic_cast<const data::SpanDataset*>(&set) == nullptr)
    throw ShapeError(cat("model '", settings.model, "' learns to find answers in texts, but '",
                         settings.data,
                         "' has no answers: give a file of questions, as in --data spans:FILE"));
  if (set.input_shape()[1] > context[0])
    throw ShapeError(cat("model '", settings.model, "' sees ", context[0],
                         " tokens, but questions and parts of texts of '", settings.data, "' have ",
                         set.input_shape()[1],
                         ": make the parts shorter, as in spans:FILE,length=", context[0]));
}

// Texts, or pairs of them, with a class each, in tokens.
void check_texts(const Settings& settings, const data::Dataset& set, const Shape& context) {
  const Shape input = set.input_shape();
  const bool texts = input.rank() == 1 || (input.rank() == 2 && input[0] == 2);
  if (set.input_dtype() != DType::Int64 || !texts || set.target_shape().rank() != 0 ||
      set.classes() < 1)
    throw ShapeError(cat("model '", settings.model,
                         "' needs texts with a class each, but a sample of '", settings.data,
                         "' is ", set.input_dtype(), " ", set.input_shape(),
                         ": give a file of lines CLASS TAB TEXT, as in --data lines:FILE"));
  if (input[input.rank() - 1] > context[0])
    throw ShapeError(cat(
        "model '", settings.model, "' sees ", context[0], " tokens, but lines of '", settings.data,
        "' have ", input[input.rank() - 1], ": cut them, as in lines:FILE,length=", context[0]));
}

// A model of language takes windows up to its context.
void check_tokens(const Settings& settings, const data::Dataset& set, const Shape& context) {
  const bool windows = set.input_shape().rank() == 1 && set.input_dtype() == DType::Int64 &&
                       set.target_shape() == set.input_shape() && set.classes() > 0;
  if (!windows)
    throw ShapeError(cat("model '", settings.model, "' needs text, but a sample of '",
                         settings.data, "' is ", set.input_dtype(), " ", set.input_shape(),
                         ": give a text file, as in --data text:FILE"));
  if (set.input_shape()[0] > context[0])
    throw ShapeError(cat("model '", settings.model, "' sees ", context[0],
                         " tokens, but the windows of '", settings.data, "' have ",
                         set.input_shape()[0],
                         ": give the data a shorter length, as in text:FILE,length=", context[0]));
}

// Where a model does not take the data: one that does, as far as there is one.
std::string other_model(const Settings& settings, const data::Dataset& set) {
  const Shape input = set.input_shape();
  const bool one_class = set.classes() > 0 && set.target_shape().rank() == 0;
  if (set.input_dtype() == DType::Int64) {
    const char* reader = dynamic_cast<const data::SpanDataset*>(&set) != nullptr ? "bert_spans"
                         : one_class                                             ? "bert_classifier"
                         : input.rank() == 2                                     ? "transformer"
                                                                                 : "gpt2";
    return cat(": choose a model for such texts, such as ", reader, " ('tenon models')");
  }
  if (!settings.network.empty()) return ": change 'input' in the file, or use other data";
  const bool for_images = settings.model_info().input.rank() == 3 && input.rank() == 3;
  const bool quantities = settings.task == kRegression || is_floating(set.target_dtype());
  if (for_images || (!quantities && !one_class)) return ": choose another model";
  return cat(": use mlp:", input.numel(), "-64-",
             quantities ? set.target_shape().numel() : set.classes(),
             quantities && settings.task != kRegression ? " and --task regression" : "");
}

}  // namespace

Context context_of(const Settings& settings) {
  Context context = current_context();
  context.device = device(settings.device);
  if (settings.threads > 0) context.threads = settings.threads;
  context.precision = precision_from_name(settings.precision);
  context.tune = tune_from_name(settings.tune);
  context.generator = std::make_shared<Generator>(static_cast<std::uint64_t>(settings.seed));
  return context;
}

std::shared_ptr<const data::Tokenizer> tokenizer_of(const Settings& settings,
                                                    const std::string& run_dir) {
  const std::string own = cat(run_dir, "/", kTokenizerFile);
  const bool kept = !run_dir.empty() && io::file_exists(own);
  if (!kept && settings.tokenizer.empty()) return nullptr;
  return std::make_shared<const data::Tokenizer>(
      data::Tokenizer::open(kept ? own : settings.tokenizer));
}

data::SourceOptions source_options(const Settings& settings,
                                   std::shared_ptr<const data::TableColumns> columns,
                                   std::shared_ptr<const data::Tokenizer> tokenizer) {
  return {.classes = settings.task != kRegression,
          .columns = std::move(columns),
          .tokenizer = std::move(tokenizer),
          .hide_words = settings.model_info().masked};
}

namespace {

// Null where the source has no such part.
std::shared_ptr<const data::Dataset> open_part(const Settings& settings, const data::Source& source,
                                               data::Split part) {
  const std::shared_ptr<data::Dataset> set = source.open(part);
  if (set == nullptr) return nullptr;
  if (settings.strict) refuse_notes(set->notes());
  return fitted(settings, set, part);
}

}  // namespace

DataSets open_data(const Settings& settings, const std::string& run_dir) {
  const models::Info model = settings.model_info();
  const auto tokenizer = tokenizer_of(settings, run_dir);
  check_vocabulary(settings, model, tokenizer.get());
  data::SourceOptions how = source_options(settings, nullptr, tokenizer);
  how.strict = settings.strict;
  const data::Source source(settings.data, how);
  // Beside each other: the first step waits for all, lest a run find out at its end that the test
  // part cannot be read.
  const auto ahead = [&settings, &source](data::Split part) {
    return in_background([&settings, &source, part] { return open_part(settings, source, part); });
  };
  auto validation = ahead(data::Split::Validation), test = ahead(data::Split::Test);
  DataSets sets;
  sets.tokenizer = tokenizer;
  sets.train = open_part(settings, source, data::Split::Train);
  if (sets.train == nullptr)
    throw ValueError(cat("'", settings.data, "' has no samples for training"));
  sets.validation = validation.get();
  sets.test = test.get();
  const Shape input = sets.train->input_shape();
  if (model.pairs) {
    check_pairs(settings, *sets.train);
    return sets;
  }
  if (model.finds_spans()) {
    for (const auto& set : {sets.train, sets.validation, sets.test})
      if (set != nullptr) check_spans(settings, *set, model.input);
    return sets;
  }
  if (model.tokens) {
    check_tokens(settings, *sets.train, model.input);
    return sets;
  }
  if (model.takes_tokens()) {
    check_texts(settings, *sets.train, model.input);
    return sets;
  }
  // Perceptrons lay any input in a row; the others want theirs as it is.
  const bool fits =
      model.input.rank() == 1 ? input.numel() == model.input.numel() : input == model.input;
  if (!fits)
    throw ShapeError(cat("model '", settings.model, "' takes ", model.input, ", but a sample of '",
                         settings.data, "' is ", input, other_model(settings, *sets.train)));
  if (sets.train->classes() < 1 && settings.task != kRegression)
    throw ShapeError(cat("'", settings.data, "' has no classes: its targets are ",
                         sets.train->target_dtype(), " ", sets.train->target_shape(),
                         "; for numeric targets, use --task regression"));
  return sets;
}

// The parameters that learn, in groups: first those at the optimizer's rate, then for each part of
// `rate_of` its own, and so once more those that learn from later on, whose names `later` are. Of
// parts within parts the inner one counts.
optim::Parameters parameters_by_rate(const nn::AnyModule& net, const Settings& settings,
                                     const std::vector<std::string>& later) {
  const std::vector<std::pair<std::string, double>> rates = parse_rates(settings.rate_of);
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
  // A rate may be of what is still frozen.
  if (settings.unfreeze_after > 0)
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
  // Groups without parameters are of no use to an optimizer.
  std::erase_if(groups, [](const optim::ParameterGroup& g) { return g.parameters.empty(); });
  return groups;
}

// What the network gives must be what the data asks for: found out before a run has a folder.
void Session::check_outputs(const data::Dataset& set) const {
  if (settings.model_info().takes_tokens()) return;
  Shape batch{2};
  for (std::int64_t size : set.input_shape()) batch.push_back(size);
  const std::vector<Shape> outputs = net.summary(batch).outputs;
  const Shape out = outputs.size() == 1 ? outputs[0] : Shape();
  const std::int64_t given = out.numel() / 2, wanted = settings.classes;
  const bool quantities = settings.task == kRegression;
  if (quantities ? given == wanted : out.rank() == 2 && given >= wanted) return;
  throw ShapeError(
      cat("model '", settings.model, "' gives ", given, given == 1 ? " number" : " numbers",
          " for a sample, where '", settings.data, "' has ", wanted,
          quantities ? (wanted == 1 ? " target" : " targets") : " classes",
          settings.network.empty() ? ": choose a model with as many outputs"
                                   : ": end the file's layers with { linear = \"classes\" }",
          settings.network.empty() && settings.model_info().input.rank() == 1
              ? cat(", as mlp:", set.input_shape().numel(), "-64-", wanted)
              : std::string(),
          // 1,000 different prices in 200 rows are no classes.
          !quantities && wanted > set.size() ? "; or, for numeric targets, use --task regression"
                                             : ""));
}

nn::Loss loss_of(const Settings& settings, const nn::AnyModule& net, double label_smoothing) {
  if (settings.task == kRegression) return StandardizedLoss{target_deviation(net)};
  const models::Info info = settings.model_info();
  if (info.rubbish_score)
    return [label_smoothing, rubbish = *info.rubbish_score](const Tensor& scores,
                                                            const Tensor& target) {
      const Tensor all = concat({scores, full({scores.size(0), 1}, rubbish, scores.dtype())}, 1);
      return cross_entropy(all, target, Reduction::Mean, label_smoothing);
    };
  if (!info.pairs && !info.masked) return nn::CrossEntropyLoss{label_smoothing};
  return nn::CrossEntropyLoss{.label_smoothing = label_smoothing,
                              .ignore_index = data::kIgnoredTarget};
}

nn::AnyModule make_net(const Settings& settings, std::int64_t classes) {
  nn::AnyModule net = settings.create_model({classes, settings.activation, nullptr, settings.head});
  for (const auto& [layer, precision] : parse_layer_precision(settings.layer_precision))
    net.set_precision(precision, layer);
  return net;
}

namespace {

LoraOptions lora_of(const Settings& settings) {
  LoraOptions options = parse_lora(settings.lora);
  // The layers of a head are as they were drawn: adapters beside them would adapt noise.
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

// Precisions that were asked for and that a GPU alone has.
std::string note_on_precision(const Settings& settings) {
  std::vector<Precision> asked{precision_from_name(settings.precision)};
  for (const auto& [layer, precision] : parse_layer_precision(settings.layer_precision))
    asked.push_back(precision);
  std::string names;
  for (const Precision precision : {Precision::Tf32, Precision::Fp16})
    if (std::find(asked.begin(), asked.end(), precision) != asked.end())
      names += cat(names.empty() ? "" : " and ", name(precision));
  return names.empty() ? "" : cat("precision: the CPU computes ", names, " products in fp32");
}

// A step of difference is rounding: half an epoch of an odd number of steps.
std::string note_on_warm_up(const Settings& settings, std::int64_t steps_per_epoch) {
  optim::ScheduleOptions o;
  o.warmup = settings.warmup;
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

}  // namespace

void Session::make_optimizer() {
  const auto* frozen = net.as<FrozenNet>();
  optimizer = optim::create(settings.optimizer,
                            parameters_by_rate(net, settings,
                                               frozen != nullptr ? frozen->names_of_frozen()
                                                                 : std::vector<std::string>()),
                            optimizer_options(settings));
}

void Session::make_loaders() {
  data::LoaderOptions training = loader_options(settings);
  training.augment = augmentation_of(settings).plain;
  train = std::make_unique<data::Loader>(sets.train, training);
  measured_ = sets;
  make_measuring_loaders();
}

void Session::make_measuring_loaders() {
  const auto loader = [this](const std::shared_ptr<const data::Dataset>& set) {
    return set == nullptr ? nullptr : test_loader(settings, set, measured_batch_);
  };
  validation = loader(measured_.validation);
  test = loader(measured_.test);
}

void Session::measure_in_batches(std::int64_t batch) {
  measured_batch_ = batch;
  make_measuring_loaders();
}

// What was frozen learns, from the samples themselves.
Stage Session::unfreeze() {
  const nn::AnyModule whole = net.as<FrozenNet>()->released();
  make_optimizer();
  net = whole;
  make_loaders();
  if (tell) tell(cat("from epoch ", settings.unfreeze_after + 1, " on, ", what_learns(net)));
  return {net, optimizer.get(), train.get(), validation.get(), test.get()};
}

Session::Session(const Settings& s, const DataSets& opened, bool resume)
    : settings(s), sets(opened), net(nn::Identity()), tokenizer(opened.tokenizer) {
  const bool quantities = settings.task == kRegression;
  if (settings.classes == 0)
    settings.classes = quantities ? sets.train->target_shape().numel() : sets.train->classes();
  if (settings.classes < sets.train->classes())
    throw ValueError(cat("setting 'classes' is ", settings.classes, ", but '", settings.data,
                         "' has ", sets.train->classes()));
  net = make_net(settings, settings.classes);
  check_outputs(*sets.train);
  if (settings.standardize && is_table(*sets.train))
    net = standardized(net, *sets.train, quantities);
  loss = loss_of(settings, net, settings.label_smoothing);
  if (!settings.weights.empty() && !resume && !ShapesOnly::is_on())
    notes.push_back(cat(
        take_fitting_weights(net, settings.weights), config_words(settings.weights, settings.model),
        settings.head.empty() ? "" : "; the head's layers are initialized randomly"));
  if (!settings.lora.empty()) net = *(adapted = with_adapters(net, lora_of(settings)));
  const std::vector<std::string> frozen = parse_parts(settings.freeze);
  if (!frozen.empty()) net = FrozenNet(net, frozen);
  if (settings.unfreeze_after > 0) check_unfreezing(settings, net);
  make_optimizer();
  make_loaders();
  if (!settings.teacher.empty() && !ShapesOnly::is_on()) open_teacher(*sets.train);
  if (!settings.freeze.empty() || adapted)
    notes.push_back(
        cat(what_learns(net), settings.unfreeze_after > 0
                                  ? cat(" until ", settings.unfreeze_after,
                                        settings.unfreeze_after == 1 ? " epoch is" : " epochs are",
                                        " done, and learn from then on")
                                  : std::string()));
  if (const std::int64_t size = sets.train->size(); size < settings.batch)
    notes.push_back(cat("each step takes all ", size,
                        " training samples: they are fewer than a batch of ", settings.batch));
  if (const std::string note = note_on_warm_up(settings, train->batches()); !note.empty())
    notes.push_back(note);
  if (current_device().kind == Device::Kind::Cpu)
    if (const std::string note = note_on_precision(settings); !note.empty()) notes.push_back(note);
  if (sets.train->images() != nullptr && !ShapesOnly::is_on()) {
    data::ImageOptions options = image_options(settings, sets.train->input_shape());
    options.resize = options.resize.middle_only();
    options.augment = augmentation_of(settings).steps;
    const ImagePlace place = place_of_images(settings, options);
    if (!place.about.empty()) {
      notes.push_back(place.about);
      settings.augment_on = place.where;  // of the run, wherever it is resumed
    }
  }
}

void Session::keep_frozen(const std::optional<Checkpoint>& checkpoint, const RunOptions& watched) {
  if (checkpoint && settings.unfreeze_after > 0 &&
      checkpoint->progress.epochs_in(checkpoint->progress.step) >= settings.unfreeze_after)
    return;  // nothing is frozen any more
  if (checkpoint) net.load_state_dict(checkpoint->model_state());
  const auto in_every_step = [this](const char* why) {
    notes.push_back(cat("the frozen part is computed in every step: ", why));
  };
  if (teacher) return in_every_step("the teacher needs the input");
  if (augmentation_of(settings).mixing.any())
    return in_every_step("the images of a batch are mixed");
  if (settings.keep_frozen == "off") return in_every_step("keep_frozen is off");
  const auto source = [this](const std::shared_ptr<const data::Dataset>& set,
                             const std::unique_ptr<data::Loader>& loader,
                             const std::string& drawn) {
    KeptSource out{set, loader->options(), {}};
    const Settings known = with_preprocess_settings(settings);
    out.preparation =
        cat(known.preprocess, " ", known.normalize, " ", known.background, " ", drawn);
    return out;
  };
  KeepOptions how;
  how.place = settings.keep_frozen;
  how.folder = cache_folder_of("frozen");
  how.limit = static_cast<std::int64_t>(settings.frozen_cache * 1073741824.0);
  how.variants = settings.frozen_variants;
  how.stop = watched.stop;
  how.progress = [&watched](std::int64_t done, std::int64_t examples) {
    for (const auto& callback : watched.callbacks) callback->on_frozen(done, examples);
  };
  std::vector<KeptSource> sources{
      source(sets.train, train, augmentation_of(settings).steps.text())};
  if (validation != nullptr) sources.push_back(source(sets.validation, validation, ""));
  if (test != nullptr) sources.push_back(source(sets.test, test, ""));
  KeptPart kept = keep_frozen_part(net, sources, how);
  for (std::string& note : kept.notes) notes.push_back(std::move(note));
  if (kept.sets.empty()) return;
  net = kept.net;
  data::LoaderOptions of_kept = train->options();
  of_kept.augment = {};  // is in what was kept
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

// "0.5 and deviation 0.2", or the numbers of all channels where they differ.
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

// What the teacher gives of the run's inputs must be scores for the run's classes.
void Session::open_teacher(const data::Dataset& set) {
  const TrainedModel model = TrainedModel::open(settings.teacher);
  if (settings.task == kRegression || model.is_regression())
    throw NotSupported("setting 'teacher': distillation needs classes, and this is a regression");
  const std::vector<std::string> own = class_words(set.class_names());
  const models::Info given = model.settings().model_info(), wanted = settings.model_info();
  const bool takes_them = given.tokens == wanted.tokens && given.pairs == wanted.pairs &&
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
  // Pixels are scaled as the run's network wants them.
  const ChannelScale used = pixel_scale(theirs), own_scale = pixel_scale(settings);
  if (set.input_dtype() == DType::UInt8 && !same_scale(used, own_scale))
    throw ValueError(cat("setting 'teacher': ", settings.teacher,
                         " was trained on pixels with mean ", scale_text(used), ", this run has ",
                         scale_text(own_scale),
                         ": set normalize, input_mean and input_std to the teacher's"));
  notes.push_back(cat("teacher: ", theirs.model, " from ", model.file(), ", temperature ",
                      settings.temperature, ", weight ", settings.distill_weight));
}

TrainOptions Session::options(const std::string& dir, bool resume) {
  TrainOptions o;
  o.epochs = settings.epochs;
  o.max_steps = settings.max_steps;
  o.schedule = settings.schedule;
  o.schedule_options.warmup = settings.warmup;
  o.schedule_options.every = settings.step_epochs;
  const Milestones milestones = parse_milestones(settings.milestones);
  o.schedule_options.milestones = milestones.epochs;
  o.schedule_options.factors = milestones.factors;
  o.schedule_options.gamma = settings.gamma;
  o.schedule_options.minimum = settings.min_lr_factor;
  o.schedule_options.power = settings.power;
  o.schedule_options.multiply = settings.restart_multiply;
  o.clip_norm = settings.clip_norm;
  o.tokens = settings.model_info().tokens;
  if (settings.label_smoothing > 0) o.evaluation_loss = loss_of(settings, net, 0);
  o.stage_epochs = settings.unfreeze_after;
  if (o.stage_epochs > 0) o.next_stage = [this] { return unfreeze(); };
  o.early_stopping = settings.early_stopping;
  o.keep_best = settings.keep_best;
  o.teacher = teacher;
  o.teacher_digest = teacher_digest;
  o.temperature = settings.temperature;
  o.distill_weight = settings.distill_weight;
  o.mixing = augmentation_of(settings).mixing;
  o.run_dir = dir;
  o.resume = resume;
  o.keep_checkpoints = settings.keep_checkpoints;
  o.checkpoint_steps = settings.checkpoint_steps;
  o.checkpoint_seconds = settings.checkpoint_seconds;
  o.settings_toml = settings.toml();
  o.model_metadata.emplace_back(
      kModelKey,
      to_json({with_preprocess_settings(settings), class_words(train->dataset().class_names()),
               train->dataset().text_unit(), train->dataset().table()}));
  if (tokenizer != nullptr) {
    o.tokenizer_json = tokenizer->json();
    o.model_metadata.emplace_back(kTokenizerKey, o.tokenizer_json);
  }
  return o;
}

std::unique_ptr<data::Loader> test_loader(const Settings& settings,
                                          std::shared_ptr<const data::Dataset> set,
                                          std::int64_t batch) {
  data::LoaderOptions o = loader_options(settings);
  o.batch = batch > 0 ? batch : std::max<std::int64_t>(kTestBatch / set->views(), 1);
  o.shuffle = o.drop_last = false;
  // Without gradients the network is soon ready for more: reading and drawing set the pace.
  o.workers = std::max(o.workers, std::min(threads(), data::kMostWorkers));
  return std::make_unique<data::Loader>(std::move(set), o);
}

}  // namespace tenon::train

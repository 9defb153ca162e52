// The settings of a run: one table of keys that set(), get(), toml() and keys() share.
#include "train/settings/settings.h"

#include <algorithm>
#include <charconv>
#include <variant>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/train.h>

#include "base/make_error.h"
#include "base/str.h"
#include "base/system/option_ranges.h"
#include "device/parse.h"
#include "io/text/toml.h"
#include "models/network.h"
#include "train/adapting/lora.h"
#include "train/settings/image_settings.h"
#include "train/settings/registered.h"

namespace tenon::train {
namespace {

using Member = std::variant<std::string Settings::*, int Settings::*, std::int64_t Settings::*,
                            double Settings::*, bool Settings::*>;

struct Field {
  const char* name;
  const char* help;
  Member member;
  double low = 0, high = 1e15;
};

constexpr double kAny = 1e15;

const Field kFields[] = {
    {"plugins", "plugins that the run needs, as it writes them: NAME VERSION DIGEST FILE",
     &Settings::plugins},
    {"model", "network: a name such as lenet5, mlp:784-300-10, or a file, net.toml",
     &Settings::model},
    {kNetworkKey, "content of the file that model names", &Settings::network},
    {"task",
     "what the network learns: classification, multi_label, regression, or a registered task; "
     "networks of text have a task of their own",
     &Settings::task},
    {"loss", "registered loss in place of the task's; empty: the task's", &Settings::loss},
    {"callbacks", "registered callbacks that watch the run: NAME,NAME", &Settings::callbacks},
    {"activation", "activation function of mlp: relu, tanh, sigmoid, gelu, silu, ...",
     &Settings::activation},
    {"head",
     "layers that replace the classifier of alexnet, vgg16, resnetN, inception_resnet_v2 or "
     "bert_classifier: 256,relu",
     &Settings::head},
    {"lora", "LoRA adapters: rank=8,alpha=16,targets=c_attn+c_proj,learn=classifier.6",
     &Settings::lora},
    {"teacher", "run of the teacher network, for knowledge distillation", &Settings::teacher},
    {"temperature", "softmax temperature of student and teacher in distillation",
     &Settings::temperature, 1e-3, 1e6},
    {"distill_weight", "weight of the distillation loss; the loss on the labels has the rest",
     &Settings::distill_weight, 0, 1},
    {"weights", "file of pretrained weights (.safetensors, .pt); tensors that fit are loaded",
     &Settings::weights},
    {"freeze", "layers whose weights are frozen, by name: features,classifier.0",
     &Settings::freeze},
    {"unfreeze_after", "epochs after which frozen layers are trained too; 0: never",
     &Settings::unfreeze_after, 0, 1e6},
    {"frozen_variants",
     "with augmentation: epochs whose frozen-layer outputs are kept and reused in turn; 0: "
     "recomputed in every step",
     &Settings::frozen_variants, 0, 1e6},
    {"keep_frozen",
     "where outputs of frozen layers are kept: memory, disk, auto (both; on disk if computing took "
     "1 s or more), off (recomputed in every step)",
     &Settings::keep_frozen},
    {"frozen_cache", "limit in GiB for frozen-layer outputs on disk, all runs together",
     &Settings::frozen_cache, 0, 1e6},
    {"rate_of", "learning rates of layers as factors of lr: features=0.1,classifier.0=2",
     &Settings::rate_of},
    {"tokenizer", "tokenizer for text: tokenizer.json, vocab.txt, vocab.json or their folder",
     &Settings::tokenizer},
    {"data",
     "data source: digits[:TRAIN,TEST], scenes[:TRAIN,TEST], random[:TRAIN,TEST], mnist[:DIR], "
     "cifar10[:DIR], cifar100[:DIR], idx:DIR, csv:FILE, npy:X,Y, text:FILE, lines:FILE, "
     "numbers[:TRAIN,TEST], pairs:FILE, spans:FILE, folder:DIR, list:FILE or shards:PATTERN",
     &Settings::data},
    {"classes", "number of classes; 0: that of the data", &Settings::classes, 0, 1e6},
    {"epochs", "passes over the training data", &Settings::epochs, 1, 1e6},
    {"max_steps", "limit of training steps; 0: none", &Settings::max_steps},
    {"batch", "batch size", &Settings::batch, 1, 16777216},
    {"optimizer",
     "optimizer: sgd, adam, adamw, rmsprop, levenberg, adagrad, sparse_adam, adadelta, adamax, "
     "nadam, radam, rprop, asgd, lion, muon, lamb or adafactor",
     &Settings::optimizer},
    {"lr", "learning rate", &Settings::lr, 0, 1e6},
    {"momentum", "momentum of sgd, rmsprop and muon", &Settings::momentum, 0, 1},
    {"nesterov", "use Nesterov momentum in sgd and muon", &Settings::nesterov},
    {"beta2", "decay rate of the second moment of adam and its relatives; of lion: of the momentum",
     &Settings::beta2, 0, 1},
    {"eps", "added to divisors by adam and others; of levenberg: damping added to the curvature",
     &Settings::eps, 0, 1e30},
    {"weight_decay", "weight decay", &Settings::weight_decay, 0, 1e6},
    {"schedule",
     "learning-rate schedule: constant, step, multistep, exponential, cosine, linear, polynomial, "
     "cosine_restarts, inverse_sqrt, plateau or one_cycle",
     &Settings::schedule},
    {"milestones",
     "multistep: epochs, counted from the end of the warm-up, after which the rate is multiplied "
     "by gamma, 3,6, or becomes this factor of lr, 3=0.4,6=0.2",
     &Settings::milestones},
    {"warmup", "warm-up epochs, at most half of the run", &Settings::warmup, 0, 1e6},
    {"step_epochs",
     "step and exponential: epochs between two changes; cosine_restarts: epochs of the first "
     "period",
     &Settings::step_epochs, 1e-6, 1e6},
    {"gamma", "step, multistep, exponential and plateau: factor of one change", &Settings::gamma,
     1e-9, 1},
    {"min_lr_factor",
     "cosine, linear, polynomial, cosine_restarts and plateau: lowest learning rate as a factor of "
     "lr",
     &Settings::min_lr_factor, 0, 1},
    {"power", "polynomial: exponent of the fraction of steps that remain", &Settings::power, 1e-9,
     1e6},
    {"restart_multiply", "cosine_restarts: each period is this many times longer than the last",
     &Settings::restart_multiply, 1, 1e6},
    {"accumulate", "batches whose mean gradient is one update of the weights",
     &Settings::accumulate, 1, 1e6},
    {"average",
     "average of the weights that is validated, kept and saved: none, ema (exponential moving "
     "average) or swa (mean of the epochs)",
     &Settings::average},
    {"average_decay", "ema: share of the average in an update, below 1", &Settings::average_decay,
     0, 1 - 1e-9},
    {"average_start", "ema and swa: epochs before the average begins", &Settings::average_start, 0,
     1e6},
    {"clip_norm", "gradient clipping: largest norm of all gradients together; 0: none",
     &Settings::clip_norm, 0, kAny},
    {"label_smoothing", "label smoothing: share of the target spread over all classes in training",
     &Settings::label_smoothing, 0, 1},
    {"precision",
     "precision of matrix products and convolutions: fp32, tf32, bf16 or fp16; the CPU computes "
     "tf32 and fp16 in fp32",
     &Settings::precision},
    {"layer_precision", "precision of single layers: 0=fp32,conv1=tf32",
     &Settings::layer_precision},
    {"seed", "random seed of weights, sample order, augmentation and dropout", &Settings::seed, 0,
     9e15},
    {"shuffle", "shuffle the samples in every epoch", &Settings::shuffle},
    {"drop_last", "drop the last batch if it is not full", &Settings::drop_last},
    {"sampling",
     "training samples of an epoch: uniform (each once) or balanced (drawn with replacement, every "
     "class equally often)",
     &Settings::sampling},
    {"strict", "treat notes as errors: data that would be skipped, converted or assumed",
     &Settings::strict},
    {"allow", "notes that strict accepts: seen (samples that equal training samples); empty: none",
     &Settings::allow},
    {"early_stopping", "early stopping: epochs without a better validation result; 0: never",
     &Settings::early_stopping, 0, 1e6},
    {"keep_best",
     "keep the epoch with the best validation result instead of the last; without a validation "
     "part, the last",
     &Settings::keep_best},
    {"input_mean", "mean subtracted from pixels (0 to 1)", &Settings::input_mean, -kAny, kAny},
    {"input_std", "standard deviation that pixels are divided by", &Settings::input_std, 1e-9,
     kAny},
    {"augment",
     "augmentation of training images: crop=4,flip,cutout=8 or resized_crop,flip,jitter=0.4; none; "
     "auto: for image files resized_crop,flip (or the recipe of net.toml), for CIFAR the recipe's, "
     "else none",
     &Settings::augment},
    {"augment_on",
     "where training images are decoded and augmented: cpu; gpu (nvJPEG); both: decoded by CPU "
     "threads, augmented on the GPU; auto: gpu if it has JPEG engines and there are fewer than 12 "
     "threads, else both, or cpu for crops and flips alone",
     &Settings::augment_on},
    {"preprocess",
     "how image files are brought to the input size: auto is resize,center_crop; resize,ten_crop "
     "averages ten crops in evaluation",
     &Settings::preprocess},
    {"normalize",
     "means/standard deviations of channels: 0.5,0.5,0.5/0.2,0.2,0.2; imagenet; none: input_mean "
     "and input_std; auto: imagenet for image files",
     &Settings::normalize},
    {"broken", "images that cannot be decoded: skip (the next image replaces them) or error",
     &Settings::broken},
    {"background",
     "background of transparent images: white, black, grey or #rrggbb; none: ignore transparency; "
     "auto: the data source's, else none",
     &Settings::background},
    {"standardize", "standardize table columns with mean and deviation of the training part",
     &Settings::standardize},
    {"device", "device: cpu, cuda or cuda:N", &Settings::device},
    {"tune",
     "choice of GPU engines for products: off (cost model), read (measured before) or write "
     "(measure unknown shapes)",
     &Settings::tune},
    {"threads", "compute threads; 0: all CPUs", &Settings::threads, 0, 1024},
    {"workers", "data-loader threads; 0: one, or for image files as many as compute threads",
     &Settings::workers, 0, 256},
    {"keep_checkpoints", "number of newest checkpoints to keep", &Settings::keep_checkpoints, 1,
     1e6},
    {"checkpoint_steps", "steps between checkpoints within an epoch; 0: by time only",
     &Settings::checkpoint_steps},
    {"checkpoint_seconds", "seconds between checkpoints within an epoch; 0: by steps only",
     &Settings::checkpoint_seconds, 0, kAny},
};

const Field& field(const std::string& key) {
  std::vector<std::string> names;
  for (const Field& f : kFields) {
    if (key == f.name) return f;
    if (f.name != std::string(kNetworkKey)) names.emplace_back(f.name);
  }
  const std::string near = nearest(key, names.data(), static_cast<int>(names.size()));
  throw ValueError(cat("there is no setting '", key, "'",
                       near.empty() ? "" : cat("; did you mean '", near, "'?")));
}

[[noreturn]] void refuse(const Field& f, const std::string& value, const std::string& wanted) {
  throw ValueError(cat("setting '", f.name, "' is '", value, "', must be ", wanted));
}

template <class T>
const char* number_kind() {
  return std::is_floating_point_v<T> ? "a number" : "a whole number";
}

std::string range_text(const Field& f, const char* kind) {
  const bool open = f.high >= kAny;
  Range range{f.low, f.high};
  if (f.low <= -kAny) range.low = -kNoLimit;
  if (open) range.high = kNoLimit;
  const std::string limits = range.text();
  return limits.empty() ? std::string(kind) : cat(kind, open ? " of " : " ", limits);
}

template <class T>
T parse_number(const Field& f, const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(f, text, number_kind<T>());
  const auto number = static_cast<double>(value);
  if (!(number >= f.low && number <= f.high)) refuse(f, text, range_text(f, number_kind<T>()));
  return value;
}

bool parse_bool(const Field& f, const std::string& text) {
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off") return false;
  refuse(f, text, "true or false");
}

void check_choice(const Field& f, const std::string& value,
                  const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  std::string all;
  for (const std::string& choice : choices) all += (all.empty() ? "" : ", ") + choice;
  const std::string near = nearest(value, choices.data(), static_cast<int>(choices.size()));
  refuse(f, value, cat("one of ", all, near.empty() ? "" : cat("; did you mean '", near, "'?")));
}

// Checks names when they are set, not when the run has already begun.
void check_name(const Field& f, const std::string& value) {
  const std::string key = f.name;
  if (key == "model" && !models::is_network_file(value)) models::info(value);
  if (key == "plugins") require_plugins(value);
  if (key == "task") check_choice(f, value, task_names());
  if (key == "loss" && !value.empty()) check_loss(value);
  if (key == "callbacks") check_callbacks(value);
  if (key == "optimizer") check_choice(f, value, optim::names());
  if (key == "schedule") check_choice(f, value, optim::schedule_names());
  if (key == "precision") check_choice(f, value, {"fp32", "tf32", "bf16", "fp16"});
  if (key == "allow" && !value.empty()) check_choice(f, value, {"seen"});
  if (key == "layer_precision") parse_layer_precision(value);
  if (key == "lora" && !value.empty()) parse_lora(value);
  if (key == "milestones") parse_milestones(value);
  if (key == "rate_of") parse_rates(value);
  if (key == "augment" && value != "auto") parse_augment_choice(value, false);
  if (key == "preprocess" && value != "auto") parse_fitting(value);
  if (key == "normalize") parse_channel_scale(value);
  if (key == "keep_frozen") check_choice(f, value, {"auto", "memory", "disk", "off"});
  if (key == "background" && value != "auto" && value != "none") io::parse_colour(value);
  if (key == "broken") check_choice(f, value, {"skip", "error"});
  if (key == "average") check_choice(f, value, {"none", "ema", "swa"});
  if (key == "sampling") check_choice(f, value, {"uniform", "balanced"});
  if (key == "augment_on") check_choice(f, value, {"auto", "cpu", "gpu", "both"});
  if (key == "tune") check_choice(f, value, {"off", "read", "write"});
  // parsed, not opened: a run can be read on a machine without its device
  if (key == "device") parse_device(value);
  if (key == "activation" && !value.empty()) nn::activation(value);
  if (key == "data" && value.empty())
    refuse(f, value, "a data source, for example 'digits' or 'mnist'");
}

std::string text_of(const Settings& settings, const Field& f) {
  return std::visit(
      [&](auto member) -> std::string {
        const auto& value = settings.*member;
        if constexpr (std::is_same_v<decltype(value), const std::string&>)
          return value;
        else if constexpr (std::is_same_v<decltype(value), const bool&>)
          return value ? "true" : "false";
        else
          return cat(value);
      },
      f.member);
}

}  // namespace

// Sets the learning rate and related values to the defaults of the chosen optimizer, except those
// that were set explicitly. A rate that suits one optimizer makes another one diverge.
void Settings::use_rates_of(const std::string& chosen) {
  auto free = [&](const char* key) {
    return std::find(given_.begin(), given_.end(), key) == given_.end();
  };
  const optim::OptimizerOptions standard = optim::defaults(chosen);
  const bool sgd = chosen == "sgd", old = chosen == "rmsprop" || chosen == "levenberg";
  if (free("lr")) lr = sgd ? 0.05 : old ? 0.001 : *standard.lr;
  if (free("eps")) eps = standard.eps.value_or(1e-8);
  if (free("momentum")) momentum = sgd ? 0.9 : standard.momentum.value_or(0);
  if (free("nesterov")) nesterov = standard.nesterov.value_or(false);
  if (free("beta2")) beta2 = standard.beta2.value_or(0.999);
  if (free("weight_decay")) weight_decay = sgd ? 5e-4 : standard.weight_decay.value_or(0);
}

void Settings::set(const std::string& key, const std::string& value) {
  const Field& f = field(key);
  if (key == "optimizer" && value != optimizer) {
    check_name(f, value);
    use_rates_of(value);
  }
  std::visit(
      [&](auto member) {
        using T = std::remove_reference_t<decltype(this->*member)>;
        if constexpr (std::is_same_v<T, std::string>) {
          check_name(f, value);
          // Read the new file before the old network is replaced, because reading may fail.
          if (key == "model")
            network = models::is_network_file(value) ? models::read_network(value).text : "";
          this->*member = value;
        } else if constexpr (std::is_same_v<T, bool>) {
          this->*member = parse_bool(f, value);
        } else {
          this->*member = parse_number<T>(f, value);
        }
      },
      f.member);
  given_.push_back(key);
}

std::string Settings::get(const std::string& key) const { return text_of(*this, field(key)); }

void Settings::apply_file(const std::string& path) {
  apply_lines(parse_settings(io::read_file(path, kMostSettingsText), path), path);
}

void Settings::apply_lines(const std::vector<SettingText>& lines, const std::string& path) {
  const auto text = std::find_if(lines.begin(), lines.end(),
                                 [](const SettingText& line) { return line.key == kNetworkKey; });
  for (const SettingText& line : lines) {
    try {
      if (text != lines.end() && line.key == "model")
        model = line.value;  // the file may be gone: its text is in the setting `network`
      else
        set(line.key, line.value);
    } catch (const ValueError& error) {
      throw make_error<ValueError>(FileName{path}, ", line ", LineNumber{line.line}, ": ",
                                   error.what());
    }
  }
}

void require_in_range(const Settings& settings) {
  for (const Field& f : kFields)
    std::visit(
        [&](auto member) {
          using T = std::remove_cvref_t<decltype(settings.*member)>;
          if constexpr (!std::is_same_v<T, std::string> && !std::is_same_v<T, bool>) {
            const auto number = static_cast<double>(settings.*member);
            if (!(number >= f.low && number <= f.high))
              refuse(f, text_of(settings, f), range_text(f, number_kind<T>()));
          }
        },
        f.member);
}

Settings Settings::of_run(const std::string& dir) {
  const std::string file = dir + "/settings.toml";
  return of_lines(parse_settings(io::read_file(file, kMostSettingsText), file), file);
}

Settings Settings::of_text(const std::string& toml, const std::string& source) {
  return of_lines(parse_settings(toml, source), source);
}

// Settings that a complete file has. Without this check a truncated file would be read as a run
// with default settings.
Settings Settings::of_lines(const std::vector<SettingText>& lines, const std::string& file) {
  Settings out;
  // A custom transform is known only to the program that registered it. Other programs can still
  // use the model, because prediction needs no augmentation. So the list is checked later, when
  // training reads it.
  std::vector<SettingText> checked;
  for (const SettingText& line : lines)
    if (line.key == "augment")
      out.augment = line.value;
    else
      checked.push_back(line);
  out.apply_lines(checked, file);
  for (const char* key : {"model", "data", "classes", "epochs", "batch", "optimizer", "lr", "seed"})
    if (std::find(out.given_.begin(), out.given_.end(), key) == out.given_.end() &&
        !(key == std::string("model") && !out.network.empty()))
      throw make_error<FormatError>(FileName{file}, " lacks '", key,
                                    "', which every run writes: the file is damaged or truncated");
  return out;
}

std::string Settings::toml() const {
  std::string out = "# Settings of a Tenon run: tenon train --config FILE takes them.\n";
  for (const Field& f : kFields) {
    const bool text = std::holds_alternative<std::string Settings::*>(f.member);
    const std::string value = text_of(*this, f);
    if (f.name == std::string(kNetworkKey) && value.empty()) continue;
    out += cat(f.name, " = ", text ? io::toml_quoted(value) : value, "  # ", f.help, "\n");
  }
  return out;
}

std::vector<Settings::Key> Settings::keys() const {
  std::vector<Key> out;
  for (const Field& f : kFields)
    if (f.name != std::string(kNetworkKey)) out.push_back({f.name, f.help, text_of(*this, f)});
  return out;
}

}  // namespace tenon::train

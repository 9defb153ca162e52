// Settings are resolved once: the network's text is parsed once for all copies of settings, and
// what a run builds afterwards reads no text.
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/optim.h>
#include <tenon/train.h>

#include "base/str.h"
#include "io/folder.h"
#include "train/runs/run_data.h"
#include "train/sessions/planned.h"
#include "train/sessions/session.h"
#include "train/settings/data_source.h"
#include "train/settings/resolved.h"
#include "train/settings/settings.h"
#include "train/toy.h"

using namespace tenon;
using train::ResolvedRun;
using train::Settings;

namespace {

constexpr char kNet[] = R"(input = [1, 28, 28]
classes = 10
layers = [ { max_pool2d = 4 }, "flatten", { linear = 12 }, "tanh", { linear = "classes" } ]
[recipe]
data = "digits:60,20"
epochs = 1
batch = 20
optimizer = "adam"
lr = 0.01
)";
constexpr char kNoNetwork[] = "this text [ describes no network";

Settings settings_of_file(const TestFolder& folder) {
  io::write_file(folder / "net.toml", kNet);
  return Settings::for_model(folder / "net.toml");
}

const models::Info* kept(const Settings& settings) {
  return &train::SettingsNetwork::find(settings).info();
}

}  // namespace

TEST_CASE("resolved: a network file is parsed once for settings, their copies and a run") {
  const TestFolder folder;
  const Settings settings = settings_of_file(folder);
  const models::Info* first = kept(settings);
  Settings copy = settings;
  copy.set("epochs", "3");
  CHECK(kept(copy) == first);
  const ResolvedRun run{Settings(copy)};
  CHECK(&run.info() == first);
  CHECK(kept(run.settings) == first);
  CHECK(run.info().parameters == settings.model_info().parameters);
}

TEST_CASE("resolved: a network is found anew where its name or text were assigned") {
  const TestFolder folder;
  Settings settings = settings_of_file(folder);
  const models::Info* first = kept(settings);
  settings.network = std::string(kNet) + "# the same layers\n";
  CHECK(kept(settings) != first);
  settings.network = kNoNetwork;
  CHECK_THROWS_AS((void)settings.model_info(), FormatError);
  settings.network = kNet;
  CHECK(kept(settings) == first);
  settings.model = "lenet5";
  settings.network.clear();
  CHECK(settings.model_info().parameters == models::info("lenet5").parameters);
  CHECK(ResolvedRun(Settings(settings)).info().name == "lenet5");
}

TEST_CASE("resolved: data, network, loaders and options of a run read no text of its network") {
  const TestFolder folder;
  const ResolvedRun run(settings_of_file(folder));
  ResolvedRun without_text = run;
  without_text.settings.network = kNoNetwork;
  const train::DataSets sets = train::open_data(without_text);
  const auto session_of = [&sets](const ResolvedRun& resolved) {
    const ContextScope scope(train::context_of(resolved));
    return train::Session(resolved, sets);
  };
  train::Session session = session_of(without_text);
  CHECK(toy::difference(session.net.state_dict(), session_of(run).net.state_dict()) == "");
  CHECK(session.options("", false).epochs == 1);
  Context limited = current_context();
  limited.memory_limit = std::int64_t{1} << 30;
  const ContextScope scope(limited);
  CHECK(train::plan_within_limit(without_text, sets) == 0);
  train::Trainer trainer(session.net, session.loss, *session.optimizer, session.options("", false));
  CHECK(trainer.fit(*session.train).steps == 3);
}

TEST_CASE("resolved: texts within settings become values") {
  Settings settings = Settings::for_model("resnet20");
  settings.set("data", "folder:in,background=white");
  settings.set("layer_precision", "0=fp32,conv1=tf32");
  settings.set("schedule", "multistep");
  settings.set("milestones", "3=0.4,6.5=0.2");
  settings.set("rate_of", "fc=2");
  settings.set("freeze", "conv1,layer1");
  settings.set("lora", "rank=4,learn=fc");
  settings.set("augment", "flip,mixup=0.2");
  settings.set("step_epochs", "2");
  settings.set("unfreeze_after", "4");
  settings.set("keep_frozen", "disk");
  settings.set("frozen_cache", "2");
  settings.set("precision", "bf16");
  settings.set("broken", "error");
  const ResolvedRun run{Settings(settings)};
  CHECK(run.compute.precision == Precision::Bf16);
  CHECK(run.compute.layer_precision == std::vector<std::pair<std::string, Precision>>{
                                           {"0", Precision::Fp32}, {"conv1", Precision::Tf32}});
  CHECK(run.schedule.name == "multistep");
  CHECK(run.schedule.options.milestones == std::vector{3.0, 6.5});
  CHECK(run.schedule.options.factors == std::vector{0.4, 0.2});
  CHECK(run.schedule.options.every == 2);
  CHECK(run.optimizer.rates == std::vector<std::pair<std::string, double>>{{"fc", 2}});
  CHECK(run.optimizer.name == "sgd");
  CHECK(*run.optimizer.options.momentum == settings.momentum);
  CHECK_FALSE(run.optimizer.options.beta2);
  CHECK(run.frozen.layers == std::vector<std::string>{"conv1", "layer1"});
  CHECK(run.frozen.until_epoch == 4);
  CHECK(run.frozen.keep.place == train::KeepPlace::Disk);
  CHECK(run.frozen.keep.limit == std::int64_t{2} << 30);
  REQUIRE(run.lora);
  CHECK(run.lora->rank == 4);
  CHECK(run.augmentation.steps.text() == data::Transforms::parse("flip").text());
  CHECK(run.augmentation.mixing.any());
  CHECK(run.images.any_size);
  CHECK(run.images.preprocess == "resize,center_crop");
  CHECK(run.images.scale.mean == std::vector{0.485, 0.456, 0.406});
  CHECK(run.images.backdrop == io::parse_colour("white"));
  CHECK(run.images.broken_is_error);
  settings.keep_frozen = "tape";
  CHECK_THROWS_WITH_AS(ResolvedRun(Settings(settings)),
                       doctest::Contains("setting 'keep_frozen' is 'tape'"), ValueError);
  settings.keep_frozen = "off";
  settings.milestones = "6,3";
  CHECK_THROWS_WITH_AS(ResolvedRun(Settings(settings)),
                       doctest::Contains("setting 'milestones' is '6,3'"), ValueError);
}

TEST_CASE("resolved: every optimizer gets the options that it has, and refuses the others") {
  const nn::Linear net(2, 2);
  for (const std::string& name : optim::names()) {
    CAPTURE(name);
    Settings settings = Settings::for_model("lenet5");
    settings.set("optimizer", name);
    const ResolvedRun run{Settings(settings)};
    const optim::OptimizerOptions has = optim::defaults(name), &given = run.optimizer.options;
    CHECK(given.lr == settings.lr);
    CHECK(given.beta2 == (has.beta2 ? std::optional(settings.beta2) : std::nullopt));
    CHECK(given.eps == (has.eps ? std::optional(settings.eps) : std::nullopt));
    CHECK(given.momentum == (has.momentum ? std::optional(settings.momentum) : std::nullopt));
    CHECK(optim::create(name, net, given)->lr() == settings.lr);
    settings.nesterov = true;
    if (!has.nesterov)
      CHECK_THROWS_WITH_AS(
          optim::create(name, net, ResolvedRun(Settings(settings)).optimizer.options),
          doctest::Contains("has no option 'nesterov'"), ValueError);
  }
}

TEST_CASE("resolved: a data source is taken apart") {
  const TestFolder folder;
  io::write_file(folder / "a,b.csv", "x,y\n1,2\n");
  const auto of = [](const std::string& text) { return train::DataSource(text); };
  const std::string file = folder / "a,b.csv", test = folder / "no,file.csv";
  const train::DataSource rows = of(cat("csv:", file, ",decimal=,,label=y,test=", test));
  CHECK(rows.kind == "csv");
  CHECK(rows.paths == std::vector<std::string>{file});
  CHECK(rows.test == folder / "no");
  CHECK(rows.options == std::vector<std::string>{"decimal=,", "label=y", "file.csv"});
  CHECK(rows.option("label") == "y");
  CHECK_FALSE(rows.option("lab"));
  CHECK(rows.names_test_part());
  CHECK_FALSE(rows.has_images());
  const train::DataSource beside("csv:a,b.csv,label=y", folder.path());
  CHECK(beside.paths == std::vector<std::string>{"a,b.csv"});
  const train::DataSource drawn = of("digits:100,20,validation=0.2,validation=0.1");
  CHECK(drawn.kind == "digits");
  CHECK_FALSE(drawn.has_path());
  CHECK(drawn.is_generated());
  CHECK(drawn.option("validation") == "0.1");  // the last one counts
  CHECK(of("mnist,validation=0.2").kind == "mnist");
  CHECK(of("mnist,validation=0.2").names_test_part());
  CHECK_FALSE(of("mnist,validation=0.2").has_path());
  CHECK(of("mnist:data,validation=0.2").paths == std::vector<std::string>{"data"});
  CHECK(of("npy:a.npy,b.npy,c.npy,d.npy,seed=1").names_test_part());
  CHECK_FALSE(of("npy:a.npy,b.npy,group=g.npy").names_test_part());
  CHECK(of("folder:in,grey").has_images());
  CHECK(of("vhs:tapes").known == nullptr);
}

TEST_CASE("resolved: what a source says of its images counts, the last word of several") {
  Settings settings = Settings::for_model("resnet20");
  settings.set("data", "folder:in,background=white,broken=error,background=black,broken=skip");
  const train::ResolvedModel model{Settings(settings)};
  CHECK(model.images.background == "black");
  CHECK_FALSE(model.images.broken_is_error);
  CHECK(model.data.text == settings.data);
}

TEST_CASE("resolved: a published set is the run's own data whatever its options") {
  const auto is_own = [](const char* given, const char* own) {
    return train::is_own_data(train::DataSource(given), train::DataSource(own));
  };
  CHECK(is_own("mnist", "mnist,validation=0.1"));
  CHECK(is_own("cifar10,validation=0.2", "cifar10"));
  CHECK_FALSE(is_own("mnist", "cifar10"));
  CHECK_FALSE(is_own("mnist", ""));
}

TEST_CASE("resolved: an opened model knows its network whatever is set") {
  const TestFolder folder;
  train::start_run(settings_of_file(folder), folder / "run");
  train::TrainedModel model = train::TrainedModel::open(folder / "run");
  const models::Info* first = &model.info();
  CHECK(first->input == Shape{1, 28, 28});
  model.set_precision(Precision::Bf16);
  model.set_preprocess("resize,center_crop");
  model.set_background("white");
  CHECK(&model.info() == first);
  CHECK(kept(model.settings()) == first);
}

TEST_CASE("resolved: a source with another option or other paths is as its text says") {
  const train::DataSource source("lines:a.txt,test=b.txt,separator=,,class=last");
  const auto same = [](const train::DataSource& made, const std::string& text) {
    const train::DataSource parsed(text);
    CHECK(made.text == text);
    CHECK(made.kind == parsed.kind);
    CHECK(made.known == parsed.known);
    CHECK(made.paths == parsed.paths);
    CHECK(made.test == parsed.test);
    CHECK(made.options == parsed.options);
    CHECK(made.parts.size() == parsed.parts.size());
  };
  same(source.with_option("length=20"), source.text + ",length=20");
  same(train::DataSource("digits:60,20").with_option("seed=3"), "digits:60,20,seed=3");
  same(source.with_paths([](const std::string& path) { return "in/" + path; }),
       "lines:in/a.txt,test=in/b.txt,separator=,,class=last");
  CHECK(train::with_context_length(source.with_option("length=20"), models::info("lenet5")).text ==
        source.text + ",length=20");
}

TEST_CASE("resolved: what a run changes later changes its settings and its values alike") {
  Settings settings = Settings::for_model("resnet20");
  settings.set("data", "folder:in");
  settings.set("freeze", "conv1,layer1");
  settings.set("unfreeze_after", "4");
  const auto same = [](const ResolvedRun& made,
                       const std::vector<std::pair<std::string, std::string>>& changes,
                       Settings from) {
    for (const auto& [key, value] : changes) from.set(key, value);
    const std::string text = from.toml();
    const ResolvedRun parsed(std::move(from));
    CHECK(made.settings.toml() == text);
    CHECK(made.compute.precision == parsed.compute.precision);
    CHECK(made.compute.threads == parsed.compute.threads);
    CHECK(made.checkpoints.steps == parsed.checkpoints.steps);
    CHECK(made.checkpoints.seconds == parsed.checkpoints.seconds);
    CHECK(made.frozen.layers == parsed.frozen.layers);
    CHECK(made.frozen.until_epoch == parsed.frozen.until_epoch);
    CHECK(made.augmentation.steps.text() == parsed.augmentation.steps.text());
    CHECK(made.images.background == parsed.images.background);
    CHECK(made.images.resize.text() == parsed.images.resize.text());
    CHECK(made.images.scale.mean == parsed.images.scale.mean);
  };
  const ResolvedRun run{Settings(settings)};
  same(run, {}, settings);
  same(run.released(), {{"freeze", ""}, {"unfreeze_after", "0"}}, settings);
  ResolvedRun changed = run;
  changed.set_threads(3);
  changed.set_checkpoint_steps(7);
  changed.set_precision(Precision::Bf16);
  changed.set_image_setting("preprocess", "resize=40,center_crop");
  changed.set_image_setting("normalize", "0.5,0.4,0.3/0.2,0.3,0.4");
  changed.set_image_setting("background", "white");
  same(changed,
       {{"threads", "3"},
        {"checkpoint_steps", "7"},
        {"checkpoint_seconds", "0"},
        {"precision", "bf16"},
        {"preprocess", "resize=40,center_crop"},
        {"normalize", "0.5,0.4,0.3/0.2,0.3,0.4"},
        {"background", "white"}},
       settings);
  CHECK_THROWS_AS(changed.set_image_setting("background", "no colour"), ValueError);
}

// Times what TrainedModel::predict() adds to the program of its network: LeNet-5 on one CPU thread.
//
// build/bin/bench_predict_cost, of './dev build all'. Arguments: requests in a round (default 500),
// rounds (default 40), folder for the weight file (default .). The bare program is the same network
// with its softmax, compiled by hand and called with a tensor. The network is opened by name and
// from its TOML text.
//
// Rows: microseconds of processor time of a request for one image and for 64. Bare calls and
// predictions alternate round by round, so that a change of the clock rate affects both; "over
// bare" is the median of the differences within a round. Ends with 1 if the bits differ from those
// of the bare program.
#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/io.h>
#include <tenon/models.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/train.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

using namespace tenon;

namespace {

struct Row {
  const char* name;
  std::function<void()> request;
  std::vector<double> us{};  // of a request, one for each round
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void measure(std::vector<Row>& rows, int requests, int rounds) {
  for (Row& row : rows) row.request();  // plans
  for (int round = 0; round < rounds; ++round)
    for (Row& row : rows) {
      const std::clock_t start = std::clock();
      for (int k = 0; k < requests; ++k) row.request();
      row.us.push_back(1e6 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / requests);
    }
}

void print(std::int64_t batch, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    std::vector<double> over;
    for (std::size_t round = 0; round < row.us.size(); ++round)
      over.push_back(row.us[round] - rows[0].us[round]);
    std::printf("batch %3lld  %-24s median %8.2f us  fastest %8.2f us  over bare %7.2f us\n",
                static_cast<long long>(batch), row.name, median(row.us),
                *std::min_element(row.us.begin(), row.us.end()), median(over));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int requests = argc > 1 ? std::atoi(argv[1]) : 500,
            rounds = argc > 2 ? std::atoi(argv[2]) : 40;
  const std::string file =
      std::string(argc > 3 ? argv[3] : ".") + "/bench_predict_cost.safetensors";
  set_threads(1);
  nn::AnyModule net = models::create("lenet5");
  net.eval();
  io::save_safetensors(file, net.state_dict());
  train::Settings described;
  described.model = "lenet5.toml";
  described.network = models::toml("lenet5");
  const train::TrainedModel model = train::TrainedModel::with_weights({}, file),
                            from_toml = train::TrainedModel::with_weights(described, file);
  std::remove(file.c_str());
  const CompiledFunction bare = compile(
      [&net](const std::vector<Tensor>& in) { return std::vector<Tensor>{softmax(net(in[0]))}; });
  for (const std::int64_t batch : {1, 64}) {
    const Tensor bytes = randint(0, 256, {batch, 1, 28, 28}).to(DType::UInt8).eval(),
                 numbers = rand({batch, 1, 28, 28}).eval();
    std::vector<Row> rows{{"bare program", [&] { (void)bare({numbers}); }},
                          {"predict(float32)", [&] { (void)model.predict(numbers); }},
                          {"predict(uint8)", [&] { (void)model.predict(bytes); }},
                          {"predict(float32), TOML", [&] { (void)from_toml.predict(numbers); }},
                          {"predict(uint8), TOML", [&] { (void)from_toml.predict(bytes); }}};
    if (bare({numbers})[0].to_vector<float>() != model.predict(numbers).to_vector<float>()) {
      std::fprintf(stderr, "the bare program and predict() give other bits\n");
      return 1;
    }
    measure(rows, batch == 1 ? requests : std::max(1, requests / 16), rounds);
    print(batch, rows);
  }
  return 0;
}

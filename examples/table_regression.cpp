// Regression on a table: house prices from area, rooms and age, read from a CSV file. The run
// standardizes columns and targets, and reports results in the table's units.
#include <tenon/tenon.h>

#include <filesystem>

#include "check.h"

using namespace tenon;

// A CSV table of generated houses.
std::string houses() {
  std::string rows = "area,rooms,age,price\n";
  const Tensor drawn = rand({600, 3});
  for (std::int64_t i = 0; i < drawn.size(0); ++i) {
    const double area = 40 + 160 * drawn[i][0].item(), rooms = 1 + 5 * drawn[i][1].item(),
                 age = 90 * drawn[i][2].item();
    const double price = 2500 * area + 9000 * rooms - 900 * age - 4 * area * age;
    rows += std::to_string(area) + "," + std::to_string(rooms) + "," + std::to_string(age) + "," +
            std::to_string(price) + "\n";
  }
  return rows;
}

int main() {
  manual_seed(1);
  io::write_file("houses.csv", houses());

  // The same with the command: tenon train mlp:3-32-1 --data csv:houses.csv,label=price
  // --task regression
  train::Settings settings = train::Settings::for_model("mlp:3-32-1");
  settings.task = "regression";
  // A tenth of the rows is for testing, a tenth of the others for validation.
  settings.data = "csv:houses.csv,label=price";
  settings.epochs = 40;
  settings.batch = 32;
  std::filesystem::remove_all("houses");
  const train::TrainResult result = train::start_run(settings, "houses");
  std::printf("best %s %.4f, test loss %.4f\n", result.best_figure.c_str(), *result.best,
              result.test->loss);

  // The model file holds the statistics of the training rows, so inputs are rows in the table's
  // units.
  const train::TrainedModel model = train::TrainedModel::open("houses/model.safetensors");
  const train::Evaluation held_out = model.evaluate("csv:houses.csv,label=price");
  std::printf("on %lld rows not trained on: R2 %.4f, off by %.0f on average\n",
              static_cast<long long>(held_out.items), held_out.errors->r2(),
              held_out.errors->mae());
  const double price = model.predict(Tensor::from<float>({100, 3, 20}, {1, 3})).item();
  std::printf("100 square metres, 3 rooms, 20 years: %.0f\n", price);
  check(held_out.errors->r2() > 0.98, "a small network explains the prices");
  check(near(price, 251'000, 25'000), "predictions are in the table's units");
}

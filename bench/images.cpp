// Measures how many photographs per second a loader decodes, crops, flips and scales:
//   bench_images FOLDER [WORKERS] [SIDE] [SECONDS] [CHANGES]
// prints one number. bench/peer_images.py does the same with torchvision's DataLoader, and
// measures both in turn if both are arguments.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <tenon/images.h>

int main(int argc, char** argv) {
  using namespace tenon;
  using Clock = std::chrono::steady_clock;
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_images FOLDER [WORKERS] [SIDE] [SECONDS] [CHANGES]\n");
    return 2;
  }
  try {
    const std::int64_t side = argc > 3 ? std::atoll(argv[3]) : 224;
    const double least = argc > 4 ? std::atof(argv[4]) : 5;
    data::ImageOptions how;
    how.input = {3, side, side};
    how.augment = data::Transforms::parse(argc > 5 ? argv[5] : "resized_crop,flip");
    data::LoaderOptions options;
    options.batch = 64;
    options.workers = argc > 2 ? std::atoi(argv[2]) : 2;
    options.channel_mean = {0.485, 0.456, 0.406};
    options.channel_std = {0.229, 0.224, 0.225};
    data::Loader loader(
        data::image_dataset(data::open_image_folder(argv[1], data::Split::Train), how), options);
    std::vector<float> input(static_cast<std::size_t>(64 * 3 * side * side));
    std::vector<std::int64_t> target(64);
    loader.next(input.data(), target.data());  // reads files into the page cache, starts threads
    const Clock::time_point start = Clock::now();
    std::int64_t images = 0;
    double seconds = 0;
    while (seconds < least) {
      images += loader.next(input.data(), target.data());
      seconds = std::chrono::duration<double>(Clock::now() - start).count();
    }
    std::printf("%.1f\n", static_cast<double>(images) / seconds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

// Tiles: the text of a kernel's configuration, and the multiprocessor resources that a tile needs.
#include <doctest/doctest.h>

#include "cuda/engines/launch/tile.h"

using namespace tenon;

TEST_CASE("tiles: the text of a configuration omits features that a tile does not have") {
  const cuda::Tile whole{64, 128, 32, 256, 3, 32, 16}, patch{16, 64, 0, 256, 0, 16, 32};
  CHECK(cuda::ConfigText()
            .type("Offset", "int")
            .tile(whole)
            .flags({{"kA", true}, {"kB", false}})
            .text() ==
        "struct Config {\n  using Offset = int;\n  static constexpr int kM = 64;\n"
        "  static constexpr int kN = 128;\n  static constexpr int kK = 32;\n"
        "  static constexpr int kThreads = 256;\n  static constexpr int kStages = 3;\n"
        "  static constexpr int kThreadM = 32;\n  static constexpr int kThreadN = 16;\n"
        "  static constexpr bool kA = true, kB = false;\n};\n");
  CHECK(cuda::ConfigText().value("Math", "kMath", "Math::Tf32").tile(patch).text() ==
        "struct Config {\n  static constexpr Math kMath = Math::Tf32;\n"
        "  static constexpr int kM = 16;\n  static constexpr int kN = 64;\n"
        "  static constexpr int kThreads = 256;\n  static constexpr int kThreadM = 16;\n"
        "  static constexpr int kThreadN = 32;\n};\n");
}

TEST_CASE("tiles: blocks on a multiprocessor, by the scarcest resource") {
  const cuda::Tile tile{64, 64, 32, 256, 3, 32, 32};
  CHECK(tile.groups(32) == 2);
  CHECK(tile.sums_bytes(2) == 4 * 2 * 64 * 72);
  GpuModel gpu;
  CHECK(cuda::resident_blocks(gpu, tile, 50 << 10, 1024) == 4);
  CHECK(cuda::resident_blocks(gpu, tile, 50 << 10, 512) == 2);
  gpu.shared_bytes = 96 << 10;
  CHECK(cuda::resident_blocks(gpu, tile, 50 << 10, 1024) == 1);
}

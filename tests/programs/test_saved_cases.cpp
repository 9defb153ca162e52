// Every case of the case table, saved and loaded: the same bits, and gradients of the case with it.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>

#include <tenon/device.h>
#include <tenon/error.h>
#include <tenon/generator.h>
#include <tenon/saved_program.h>

#include "cases/modes.h"
#include "cuda/gpu.h"

using namespace tenon;

namespace cases {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(),
                     static_cast<std::size_t>(a.numel()) * item_size(a.dtype())) == 0;
}

struct SavedCase {
  std::string file = (std::filesystem::temp_directory_path() /
                      ("tenon-case-" + std::to_string(getpid()) + ".tenon"))
                         .string();
  ~SavedCase() { std::filesystem::remove(file); }
  SavedCase() = default;
  SavedCase(const SavedCase&) = delete;
  SavedCase& operator=(const SavedCase&) = delete;

  /// False if the case calls code of its own, which is refused.
  bool save(const CompiledFunction::Body& function) const {
    try {
      save_program(file, function, {});
    } catch (const NotSupported& refused) {
      CHECK(std::string(refused.what()).find("runs code that a file cannot hold") !=
            std::string::npos);
      return false;
    }
    return true;
  }
};

void check_saved(const Case& c, DType dtype) {
  const CompiledFunction::Body function = [&](const Tensors&) { return results(c, dtype); };
  const SavedCase saved;
  if (!saved.save(function)) return;
  // This case draws from a generator of its own.
  const bool draws = c.name == "dropout";
  const SavedProgram program =
      load_program(saved.file, draws ? OptionalGenerator(Generator(11)) : OptionalGenerator());
  manual_seed(7);
  const Outputs got = program({});
  manual_seed(7);
  const Outputs wanted = compile(function)({});
  REQUIRE(got.size() == wanted.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    INFO(c.name << ", result " << k);
    CHECK(same_bits(got[k], wanted[k]));
  }
}

}  // namespace

TEST_CASE("saved programs: every case gives the same bits, float32") {
  each_case([](const Case& c) { check_saved(c, DType::Float32); });
}

TEST_CASE("saved programs: every case gives the same bits, bfloat16 and float64") {
  each_case([](const Case& c) {
    if (number_of(c.name) % 4 == 0) check_saved(c, DType::Float64);
    if (number_of(c.name) % 4 == 1 && c.in_16_bits) check_saved(c, DType::BFloat16);
  });
}

TEST_CASE("cuda: saved programs of cases give the same bits") {
  if (!test::has_gpu()) return;
  each_case([](const Case& c) {
    set_device("cuda");
    if (number_of(c.name) % 8 == 0) check_saved(c, DType::Float32);
  });
}

}  // namespace cases

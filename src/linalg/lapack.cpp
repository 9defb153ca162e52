// Finds LAPACK: the file that TENON_LAPACK names, or else an installed library.
#include "linalg/lapack.h"

#include <vector>

#include <dlfcn.h>

#include "base/str.h"
#include "base/system/env.h"

namespace tenon::linalg {
namespace {

// The system's LAPACK first: where OpenBLAS or another is installed beside it, this name leads to
// the one that the system's owner prefers.
constexpr const char* kLibraries[] = {"liblapack.so.3", "libopenblas.so.0", "libmkl_rt.so.2"};

struct Loaded {
  std::string problem;
  Lapack<float> floats;
  Lapack<double> doubles;
};

void* open_library(std::string& problem) {
  const std::string chosen = env_text("TENON_LAPACK");
  if (!chosen.empty()) {
    void* const handle = dlopen(chosen.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) problem = cat("TENON_LAPACK names no library that loads: ", dlerror());
    return handle;
  }
  for (const char* const name : kLibraries)
    if (void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
  problem =
      "linear algebra needs LAPACK, which is not installed: install the package libopenblas0 or "
      "liblapack3, or name the library's file in TENON_LAPACK";
  return nullptr;
}

template <class Routine>
void find(void* library, const std::string& name, Routine& routine, std::string& problem) {
  routine = reinterpret_cast<Routine>(dlsym(library, name.c_str()));
  if (routine == nullptr && problem.empty())
    problem = cat("the LAPACK library has no ", name,
                  ": install another, or name its file in TENON_LAPACK");
}

Loaded load() {
  Loaded out;
  void* const library = open_library(out.problem);
  if (library == nullptr) return out;
#define TENON_FIND_ROUTINE(name, parameters)                  \
  find(library, "s" #name "_", out.floats.name, out.problem); \
  find(library, "d" #name "_", out.doubles.name, out.problem);
  TENON_LAPACK_ROUTINES(TENON_FIND_ROUTINE)
#undef TENON_FIND_ROUTINE
  return out;
}

const Loaded& loaded() {
  static const Loaded* const table = new Loaded(load());
  return *table;
}

}  // namespace

template <>
const Lapack<float>& lapack<float>() {
  return loaded().floats;
}

template <>
const Lapack<double>& lapack<double>() {
  return loaded().doubles;
}

const std::string& lapack_problem() { return loaded().problem; }

}  // namespace tenon::linalg

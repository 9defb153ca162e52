// What measurements say about contractions on GPUs: a table from a region's pattern to the engine
// and configuration that won, and how choose_engines asks for it.
//
// The plan only reads: timing, files and the process's settings are the run room's. A row names its
// engine and the version it was timed with, so that a row which does not fit any more is passed
// over, never guessed at.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/engine.h"

namespace tenon {

struct Program;
struct PlanOptions;
class AlikeSteps;

/// How configurations begin whose kernels take much memory beside time: one wins only where it is
/// twice as fast as all others.
inline constexpr char kMuchMemory[] = "large-";

struct TuneChoice {
  std::string engine, configuration;
  std::string version;      // Engine::version() when it was chosen
  double microseconds = 0;  // 0: it was chosen without a measurement
  std::string next;         // who came second, "cublaslt 2"; empty: nobody
  double next_microseconds = 0;
  std::string rivals;  // all who competed, with versions
  bool operator==(const TuneChoice&) const = default;
};

/// Choices by key (tune_key). As text a line a row, each with a checksum.
class TuneTable {
 public:
  /// Null when there is none.
  const TuneChoice* find(const std::string& key) const;
  /// Of the keys that differ in one size, which is larger there, the nearest one's; null when there
  /// is none: what a whole batch took, for an incomplete one.
  const TuneChoice* find_larger(const std::string& key) const;
  void put(const std::string& key, TuneChoice choice);
  /// Takes rows that it has not.
  void merge(const TuneTable& other);
  std::size_t size() const { return rows_.size(); }
  /// "native 5, cublaslt 2": how many rows each engine has.
  std::string summary() const;
  bool operator==(const TuneTable&) const = default;

  std::string text() const;
  /// Takes the rows that are whole; *damaged counts the lines that are not. Throws FormatError when
  /// the text is no such table at all.
  static TuneTable parse(std::string_view text, int* damaged = nullptr);

 private:
  std::map<std::string, TuneChoice> rows_;
};

/// The GPU, and all that decides how fast a contraction region runs on it: op, shapes, strides,
/// dtypes, arithmetic and epilogue, but no names and no numbers of the epilogue. Sizes that may
/// grow with the batch (rows and inner sum of a product, images) are letters, whose values end the
/// key: "… [m, k]float32{400,1} … with m 64 k 400".
std::string tune_key(std::string_view gpu, const Region& region, std::span<const Value> values);

/// Multiply-adds of a contraction.
double multiply_adds(const Contraction& c);

/// What choose_engines is told about a step.
struct TuneAdvice {
  std::string key;                   // empty: the step is none of the tuner's
  std::optional<TuneChoice> choice;  // none: by estimate
  const char* source = "";           // "tuned", "built in", "as before in this run"
  bool repeats = false;              // the choice is this run's own, from before
  bool exact = false;                // of these very sizes, then, not of a whole batch's
};

/// What a step got in the end.
struct TakenChoice {
  std::string key;
  TuneChoice choice;
};

class Tuning {
 public:
  virtual ~Tuning() = default;
  /// For every step of the program, whose engines are not chosen yet; steps that are alike get the
  /// same.
  virtual std::vector<TuneAdvice> advise(const Program& program, const AlikeSteps& alike,
                                         const PlanOptions& options) = 0;
  /// What is known about a region before anything is measured.
  virtual TuneAdvice known(const Region&, std::span<const Value>, const PlanOptions&) { return {}; }
  /// What a step of this key got in the end.
  virtual void taken(const std::string& key, const TuneChoice& choice) = 0;
};

/// The engine of that choice among these, when it still is what was timed and can run the region.
const Engine* engine_of(const TuneChoice& choice, std::span<const Engine* const> engines,
                        const Region& region, std::span<const Value> values);
/// Whether every engine that claims the region has competed.
bool all_competed(const TuneChoice& choice, std::span<const Engine* const> engines,
                  const Region& region, std::span<const Value> values);
/// Tells who tunes once more what a program took that was planned before, and its bodies.
void repeat_choices(const Program& program, Tuning& tuning);
/// For people: "tuned: 12.3 us, next cublaslt 2 14.0 us".
std::string choice_text(const TuneAdvice& advice);

}  // namespace tenon

// Measurements of contractions on GPUs: a table from a region's key to the engine and configuration
// that was fastest, and the interface through which choose_engines asks for it.
//
// The planner only reads the table: timing, files and process settings belong to src/run. A row
// names its engine and the engine's version, so a row that no longer fits is skipped.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/program/engine.h"

namespace tenon {

struct Program;
struct PlanOptions;
class EqualSteps;

/// Prefix of configurations whose kernels need much memory. Such a configuration wins only if it is
/// twice as fast as all others.
inline constexpr char kMuchMemory[] = "large-";

struct TuneChoice {
  std::string engine, configuration;
  std::string version;      // Engine::version() at the time of the choice
  double microseconds = 0;  // 0: chosen without a measurement
  std::string next;         // the second best, "cublaslt 2"; empty: none
  double next_microseconds = 0;
  std::string rivals;  // all engines that competed, with versions
  bool operator==(const TuneChoice&) const = default;
};

/// Choices by key (tune_key). The text form has one line for each row, with a checksum.
class TuneTable {
 public:
  /// Null if there is none.
  const TuneChoice* find(const std::string& key) const;
  /// Among keys that differ in one size, which is larger there, the nearest; null if there is none.
  /// This is how an incomplete batch finds the choice of the whole batch.
  const TuneChoice* find_larger(const std::string& key) const;
  void put(const std::string& key, TuneChoice choice);
  /// Adds the rows that are missing.
  void merge(const TuneTable& other);
  std::size_t size() const { return rows_.size(); }
  /// For example "native 5, cublaslt 2": the number of rows for each engine.
  std::string summary() const;
  bool operator==(const TuneTable&) const = default;

  std::string text() const;
  /// Parses the undamaged rows; *damaged receives the number of other lines. Throws FormatError if
  /// the text is not a tune table.
  static TuneTable parse(std::string_view text, int* damaged = nullptr);

 private:
  std::map<std::string, TuneChoice> rows_;
};

/// The GPU and everything that decides how fast a contraction region runs on it: op, shapes,
/// strides, dtypes, arithmetic and epilogue, without names and without the epilogue's numbers.
/// Sizes that may grow with the batch (rows and inner length of a product, number of images) are
/// letters, and their values end the key: "… [m, k]float32{400,1} … with m 64 k 400".
std::string tune_key(std::string_view gpu, const Region& region, std::span<const Value> values);

/// Multiply-adds of a contraction.
double multiply_adds(const Contraction& c);

/// The tuner's advice about one step.
struct TuneAdvice {
  std::string key;                   // empty: the tuner does not handle this step
  std::optional<TuneChoice> choice;  // none: choose by estimate
  const char* source = "";           // "tuned", "built in", "as before in this run"
  bool repeats = false;              // this run made the choice earlier
  bool exact = false;                // for exactly these sizes, not for a whole batch
};

/// The engine and configuration that a step received.
struct TakenChoice {
  std::string key;
  TuneChoice choice;
};

class Tuning {
 public:
  virtual ~Tuning() = default;
  /// Advice for every step of the program, whose engines are not chosen yet. Equal steps get equal
  /// advice.
  virtual std::vector<TuneAdvice> advise(const Program& program, const EqualSteps& alike,
                                         const PlanOptions& options) = 0;
  /// What is known about a region before anything is measured.
  virtual TuneAdvice known(const Region&, std::span<const Value>, const PlanOptions&) { return {}; }
  /// Reports what a step with this key received.
  virtual void taken(const std::string& key, const TuneChoice& choice) = 0;
};

/// The engine of a choice, if its version is still the one that was timed and it can run the
/// region; otherwise null.
const Engine* engine_of(const TuneChoice& choice, std::span<const Engine* const> engines,
                        const Region& region, std::span<const Value> values);
/// Whether every engine that claims the region took part in the measurement.
bool all_were_measured(const TuneChoice& choice, std::span<const Engine* const> engines,
                       const Region& region, std::span<const Value> values);
/// For printing: "tuned: 12.3 us, next cublaslt 2 14.0 us".
std::string choice_text(const TuneAdvice& advice);

}  // namespace tenon

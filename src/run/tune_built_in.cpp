// Choices that travel in the library. Rows are those of a table that `--tune write` made on the
// card; they are consulted after the table on disk.
#include "run/tune_store.h"

namespace tenon {
namespace {

constexpr std::string_view kRows = "tenon-tune 1\n";

}  // namespace

const TuneTable& built_in_choices() {
  static const TuneTable* const table = new TuneTable(TuneTable::parse(kRows));
  return *table;
}

}  // namespace tenon

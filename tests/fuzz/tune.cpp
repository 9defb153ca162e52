// Fuzzes the reader of tune tables: an accepted table is written and read back as the same table.
// Also fuzzes the parser of keys of unknown rows.
#include <cstdlib>
#include <string>

#include "fuzz/fuzz.h"
#include "plan/program/tune.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tenon::fuzz::refuse_or_read(data, size, [](std::string_view bytes) {
    tenon::TuneTable keys;
    keys.put("p with " + std::string(bytes), {});
    (void)keys.find_larger("p with m 64 k 5");
    (void)keys.find_larger(std::string(bytes));
    int damaged = 0;
    const tenon::TuneTable table = tenon::TuneTable::parse(bytes, &damaged);
    const std::string text = table.text();
    const tenon::TuneTable again = tenon::TuneTable::parse(text, &damaged);
    if (damaged != 0 || again.size() != table.size() || again.text() != text) std::abort();
  });
}

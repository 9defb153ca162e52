// Plugins in a program: a plugin whose entry fails leaves nothing behind, and another one may then
// take its names. Only a program that exports the library's symbols can load one (tests/cli).
#include <doctest/doctest.h>

#include <tenon/error.h>
#include <tenon/io.h>
#include <tenon/plugin.h>

#include "base/system/registrations.h"
#include "io/folder.h"

using namespace tenon;

TEST_CASE("plugins: what a failed entry registered is undone, the last one first") {
  std::vector<int> undone;
  {
    PluginRegistrations failing("failing");
    note_registration("thing 'a'", [&] { undone.push_back(1); });
    note_registration("thing 'b'", [&] { undone.push_back(2); });
    CHECK(owner_of("thing 'a'") == " of the plugin 'failing'");
  }
  CHECK(undone == std::vector<int>{2, 1});
  CHECK(owner_of("thing 'a'").empty());
  PluginRegistrations kept("kept");
  note_registration("thing 'a'", [&] { undone.push_back(3); });
  CHECK(kept.keep() == std::vector<std::string>{"thing 'a'"});
  CHECK(owner_of("thing 'a'") == " of the plugin 'kept'");
  CHECK(undone.size() == 2);
}

TEST_CASE("plugins: files that are no plugin of this version are refused before they are linked") {
  const TestFolder folder;
  const auto refusal = [&](const std::string& bytes) {
    io::write_file(folder / "p.so", bytes);
    try {
      (void)load_plugin(folder / "p.so");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  std::string mark = "tenon-plugin-";
  mark += "handshake|";
  CHECK(refusal("text").find("is no plugin of Tenon") != std::string::npos);
  CHECK(refusal(mark).find("is no plugin of Tenon") != std::string::npos);
  CHECK(refusal(mark + "1|a" + '\0').find("is no plugin of Tenon") != std::string::npos);
  CHECK(refusal(mark + "0.0.1 x|old|1.0" + '\0').find("'old' was built for Tenon 0.0.1 x") !=
        std::string::npos);
  CHECK(refusal(mark + TENON_PLUGIN_BUILD + "|cut|1.0" + '\0').find("cannot be linked") !=
        std::string::npos);
  CHECK_THROWS_AS(load_plugin(folder / "none.so"), IoError);
  CHECK(loaded_plugins().empty());
}

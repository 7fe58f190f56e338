// A fake recorder for tests that are not in C++: prints the path of its socket, and when its stdin
// ends, one line of JSON per marker.
#include <algorithm>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/marker/fake_reader.h"

int main() try {
  sphase::testing::FakeReader reader;
  std::cout << reader.serve() << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  for (const auto& marker : reader.all_markers()) {
    std::string text = marker.text;
    std::replace(text.begin(), text.end(), '\0', '=');
    const nlohmann::json json = {{"type", std::string(1, "?+-=:"[marker.raw.type])},
                                 {"text", text},
                                 {"depth", marker.raw.depth},
                                 {"value", marker.raw.value},
                                 {"client", marker.raw.client},
                                 {"tid", marker.raw.tid}};
    std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

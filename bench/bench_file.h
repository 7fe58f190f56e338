// build/bench/NAME.json, as every bench writes it, and the same figures as a short table.
#pragma once

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sphase {

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class BenchFile {
 public:
  explicit BenchFile(const std::string& name) : name_(name) {
    utsname system{};
    uname(&system);
    json_["bench"] = name;
    json_["machine"] = {{"cpus", sysconf(_SC_NPROCESSORS_ONLN)},
                        {"kernel", system.release},
                        {"model", cpu_model()}};
    json_["figures"] = nlohmann::json::object();
    json_["why_null"] = nlohmann::json::object();
    json_["command"] = "./dev bench " + name;
  }
  void figure(const std::string& key, double value) {
    json_["figures"][key] = value;
    std::printf("%-32s %12.3f\n", key.c_str(), value);
  }
  void missing(const std::string& key, const std::string& why) {
    json_["figures"][key] = nullptr;
    json_["why_null"][key] = why;
    std::printf("%-32s %12s  %s\n", key.c_str(), "-", why.c_str());
  }
  bool write() const {
    std::filesystem::create_directories("build/bench");
    std::ofstream file("build/bench/" + name_ + ".json");
    file << json_.dump(2) << "\n";
    return static_cast<bool>(file.flush());
  }

 private:
  static std::string cpu_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    }
    return "unknown";
  }
  std::string name_;
  nlohmann::json json_;
};

}  // namespace sphase

// A temporary folder of a bench, removed with everything in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace sphase {

struct BenchFolder {
  BenchFolder() {
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp " + path);
  }
  ~BenchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  std::string path =
      std::filesystem::temp_directory_path().string() + "/sphase-bench-" + std::string(6, 'X');
};

}  // namespace sphase

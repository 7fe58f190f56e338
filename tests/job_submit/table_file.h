// Writes advice tables for tests and benches.
#pragma once

#include <cdb.h>
#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "common/advice.h"

namespace sphase::testing {

class TableFile {
 public:
  explicit TableFile(const std::string& path) : path_(path), aside_(path + ".new") {
    file_ = ::open(aside_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file_ < 0 || cdb_make_start(&make_, file_) != 0) throw std::runtime_error(aside_);
  }
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  void add(std::string_view key, Advice advice) {
    const std::size_t size = seal_advice(key, advice);
    add_bytes(key, {reinterpret_cast<const char*>(&advice), size});
  }
  void add_bytes(std::string_view key, std::string_view value) {
    if (cdb_make_add(&make_, key.data(), static_cast<unsigned>(key.size()), value.data(),
                     static_cast<unsigned>(value.size())) != 0) {
      throw std::runtime_error("cdb_make_add");
    }
  }
  /// Renames it into place.
  void done() {
    if (cdb_make_finish(&make_) != 0 || ::close(file_) != 0 ||
        ::rename(aside_.c_str(), path_.c_str()) != 0) {
      throw std::runtime_error(path_);
    }
  }

 private:
  std::string path_, aside_;
  int file_ = -1;
  cdb_make make_{};
};

}  // namespace sphase::testing

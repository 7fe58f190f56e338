#include "collector/learn/advice_table.h"

#include <cdb.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <limits>
#include <string_view>

namespace sphase {
namespace {

constexpr std::int64_t kNeverExpired = std::numeric_limits<std::int64_t>::min();

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return fd_; }
  /// Closed by itself where an error of close() matters: some file systems write only then.
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Everything that may fail for want of space; errno says why.
bool write_all(int file, const std::vector<AdviceEntry>& entries) {
  cdb_make maker;
  if (cdb_make_start(&maker, file) != 0) return false;
  for (const auto& [key, advice] : entries) {
    Advice sealed = advice;
    const std::size_t size = seal_advice(key, sealed);
    if (cdb_make_add(&maker, key.data(), static_cast<unsigned>(key.size()), &sealed,
                     static_cast<unsigned>(size)) != 0) {
      const int code = errno;
      cdb_make_finish(&maker);  // gives its memory back
      errno = code;
      return false;
    }
  }
  return cdb_make_finish(&maker) == 0;
}

/// slurmctld runs as SlurmUser, and the collector often as root.
bool give_to_owner(int file, const std::string& folder) {
  struct stat facts {};
  if (::geteuid() != 0) return true;
  return ::stat(folder.c_str(), &facts) == 0 && ::fchown(file, facts.st_uid, facts.st_gid) == 0;
}

Status write_aside(const std::string& aside, const std::vector<AdviceEntry>& entries) {
  // A file of that name was left by a program of the same pid that was killed.
  ::unlink(aside.c_str());
  File file(aside, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (file.get() < 0) return errno_error("cannot make " + aside);
  if (!give_to_owner(file.get(), folder_of(aside))) {
    return errno_error("cannot give " + aside + " to the owner of its folder");
  }
  if (!write_all(file.get(), entries) || ::fsync(file.get()) != 0 || !file.close()) {
    return errno_error("cannot write " + aside);
  }
  return Done{};
}

Status sync_folder(const std::string& folder) {
  const File opened(folder, O_RDONLY | O_DIRECTORY);
  if (opened.get() < 0 || ::fsync(opened.get()) != 0) {
    return errno_error("cannot make sure of " + folder);
  }
  return Done{};
}

/// An open table. cdb_init maps the whole file, and checks that its parts lie inside it.
class Table {
 public:
  static Status open(const std::string& path, Table& out) {
    const File file(path, O_RDONLY | O_NONBLOCK);
    if (file.get() < 0) {
      if (errno != ENOENT) return errno_error("cannot open " + path);
      return Error{"there is no " + path + ": `sphase-collector learn` makes it"};
    }
    if (cdb_init(&out.table_, file.get()) != 0) {
      return Error{path + " is no advice table, or is cut short"};
    }
    out.open_ = true;
    return Done{};
  }
  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() {
    if (open_) cdb_free(&table_);
  }
  cdb* get() { return &table_; }
  bool inside() const { return key().data() != nullptr && value().data() != nullptr; }
  std::string_view key() const { return view(cdb_getkey(&table_), cdb_keylen(&table_)); }
  std::string_view value() const { return view(cdb_getdata(&table_), cdb_datalen(&table_)); }

 private:
  static std::string_view view(const void* bytes, unsigned size) {
    return bytes == nullptr ? std::string_view()
                            : std::string_view(static_cast<const char*>(bytes), size);
  }
  cdb table_{};
  bool open_ = false;
};

}  // namespace

Status write_advice_table(const std::string& path, const std::vector<AdviceEntry>& entries) {
  const std::string aside = path + ".new-" + std::to_string(::getpid());
  Status done = write_aside(aside, entries);
  if (done && ::rename(aside.c_str(), path.c_str()) != 0) {
    done = errno_error("cannot put " + aside + " in place of " + path);
  }
  if (!done) {
    ::unlink(aside.c_str());
    return done;
  }
  return sync_folder(folder_of(path));
}

Result<std::vector<AdviceEntry>> read_advice_table(const std::string& path) {
  Table table;
  if (auto opened = Table::open(path, table); !opened) return Error{opened.error()};
  std::vector<AdviceEntry> entries;
  unsigned at = 0, before = 0;
  cdb_seqinit(&at, table.get());
  int found = 0;
  while (before = at, (found = cdb_seqnext(&at, table.get())) > 0) {
    // cdb_seqnext (tinycdb 0.78, cdb_seq.c) takes lengths near 4 GiB, and then goes back.
    if (at <= before || !table.inside()) return Error{path + " is damaged"};
    AdviceEntry entry;
    entry.first = table.key();
    const auto state = read_advice(entry.first, table.value(), kNeverExpired, entry.second);
    if (state == AdviceState::kFound) entries.push_back(std::move(entry));
  }
  if (found < 0) return Error{path + " is damaged"};
  return entries;
}

Result<std::optional<Advice>> find_advice(const std::string& path, const std::string& key,
                                          std::int64_t now_s) {
  using Found = std::optional<Advice>;
  Table table;
  if (auto opened = Table::open(path, table); !opened) return Error{opened.error()};
  const int found = cdb_find(table.get(), key.data(), static_cast<unsigned>(key.size()));
  if (found < 0) return Error{path + " is damaged"};
  if (found == 0) return Found();
  Advice advice;
  switch (read_advice(key, table.value(), now_s, advice)) {
    case AdviceState::kFound:
      return Found(advice);
    case AdviceState::kExpired:
    case AdviceState::kMissing:
      return Found();
    case AdviceState::kOtherVersion:
      return Error{path + " was written by another version of sphase"};
    case AdviceState::kDamaged:
      break;
  }
  return Error{"the advice for " + key + " in " + path + " is damaged"};
}

}  // namespace sphase

// A recorder as far as the marker can see: a ring in a sealed memfd, a socket that hands it out,
// and a thread that drains it by the rules of common/ring.h.
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/ring.h"

namespace sphase::testing {

inline std::size_t ring_bytes(std::uint32_t capacity) {
  return SPHASE_RING_HEADER_BYTES + std::size_t{capacity} * SPHASE_RECORD_BYTES;
}

inline sphase_record* records_of(sphase_ring* ring) {
  return reinterpret_cast<sphase_record*>(reinterpret_cast<char*>(ring) + SPHASE_RING_HEADER_BYTES);
}

inline void init_ring(sphase_ring* ring, std::uint32_t capacity) {
  ring->magic = SPHASE_RING_MAGIC;
  ring->version = SPHASE_WIRE_VERSION;
  ring->capacity = capacity;
  for (std::uint32_t i = 0; i < capacity; ++i) records_of(ring)[i].seq = i;
}

/// The reader's side of a ring, wherever its memory is.
class RingReader {
 public:
  RingReader(sphase_ring* ring, std::uint32_t capacity) : ring_(ring), capacity_(capacity) {}

  /// Hands every published record to `take`, then moves `tail`. Returns how many there were.
  template <typename Take>
  std::uint64_t drain(Take take) {
    const std::uint64_t first = position_;
    while (position_ - first < capacity_ && published()) {
      const sphase_record copy = *slot();
      __atomic_store_n(&slot()->seq, position_ + capacity_, __ATOMIC_RELEASE);
      ++position_;
      take(copy);
    }
    __atomic_store_n(&ring_->tail, position_, __ATOMIC_RELEASE);
    return position_ - first;
  }

  /// Whether a slot is claimed that was not read yet.
  bool is_behind() const { return __atomic_load_n(&ring_->head, __ATOMIC_ACQUIRE) != position_; }

  /// Passes by one slot that is claimed but not published, as the recorder does after 100 ms.
  void skip() {
    __atomic_store_n(&slot()->seq, position_ + capacity_, __ATOMIC_RELEASE);
    ++position_;
  }

  /// Sleeps until a writer rings, or for `limit_ms`.
  void wait_for_bell(int limit_ms) {
    __atomic_store_n(&ring_->bell, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&slot()->seq, __ATOMIC_SEQ_CST) != position_ + 1) {
      const timespec limit{limit_ms / 1000, limit_ms % 1000 * 1'000'000L};
      syscall(SYS_futex, &ring_->bell, FUTEX_WAIT, 1, &limit, nullptr, 0);
    }
    __atomic_store_n(&ring_->bell, 0, __ATOMIC_SEQ_CST);
  }

 private:
  sphase_record* slot() { return &records_of(ring_)[position_ & (capacity_ - 1)]; }
  bool published() { return __atomic_load_n(&slot()->seq, __ATOMIC_ACQUIRE) == position_ + 1; }

  sphase_ring* ring_;
  std::uint64_t capacity_;
  std::uint64_t position_ = 0;
};

/// A ring in a memfd, mapped here.
class FakeRing {
 public:
  explicit FakeRing(std::uint32_t capacity = SPHASE_RING_CAPACITY, bool sealed = true)
      : bytes_(ring_bytes(capacity)),
        fd_(memfd_create("sphase-test", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) {
      throw std::runtime_error("memfd");
    }
    void* address = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (address == MAP_FAILED) throw std::runtime_error("mmap");
    ring_ = static_cast<sphase_ring*>(address);
    init_ring(ring_, capacity);
    if (sealed) fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  }
  ~FakeRing() {
    munmap(ring_, bytes_);
    close(fd_);
  }
  FakeRing(const FakeRing&) = delete;
  FakeRing& operator=(const FakeRing&) = delete;

  sphase_ring* get() { return ring_; }
  int fd() const { return fd_; }

 private:
  std::size_t bytes_;
  int fd_;
  sphase_ring* ring_ = nullptr;
};

/// One record, as a test wants to look at it.
struct Marker {
  sphase_record raw;
  std::string text;
};

/// How the fake answers a hello.
enum class Answer {
  kWelcome,
  kNothing,       // reads it and stays silent
  kNoAccept,      // never even accepts, and its queue is full
  kHangUp,        // closes at once
  kGarbage,       // 24 random bytes and the memfd
  kShort,         // half a welcome and the memfd
  kNoDescriptor,  // a welcome without memfd
  kTwoMemfds,     // a welcome with two
  kOtherVersion,
};

struct FakeSetup {
  Answer answer = Answer::kWelcome;
  int answer_after_ms = 0;
  int accept_after_ms = 0;                        // until then its queue is full
  std::uint32_t capacity = SPHASE_RING_CAPACITY;  // of the ring
  std::uint32_t told_capacity = 0;                // in the welcome, if not 0
  bool header_agrees = false;                     // the header says what the welcome says
  bool sealed = true;
  bool drains = true;
  bool broken_header = false;
  int nap_ms = 0;             // a slow reader: sleeps so long between two drains
  bool bounded_duty = false;  // as the recorder: after a drain that took d, sleeps for 9 d
};

class FakeReader {
 public:
  explicit FakeReader(FakeSetup setup = {})
      : setup_(setup), ring_(setup.capacity, setup.sealed), reader_(ring_.get(), setup.capacity) {
    if (setup_.header_agrees) ring_.get()->capacity = setup_.told_capacity;
    if (setup_.broken_header) ring_.get()->magic = 0;
    listen_here();
  }
  ~FakeReader() {
    stop();
    for (const int fd : kept_) close(fd);
    close(listen_fd_);
    close(stop_fd_);
    unlink(path_.c_str());
    rmdir(directory_.c_str());
  }
  FakeReader(const FakeReader&) = delete;
  FakeReader& operator=(const FakeReader&) = delete;

  /// Starts to answer and to drain, and returns the socket's path. Not in the constructor, so that
  /// a test can fork while it has one thread: a sanitizer may hang in a child otherwise.
  const std::string& serve() {
    if (!answering_.joinable()) {
      answering_ = std::thread([this] { answer_all(); });
      if (setup_.drains) draining_ = std::thread([this] { drain_all(); });
    }
    return path_;
  }
  void stop() {
    stop_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = write(stop_fd_, &one, sizeof one);
    if (answering_.joinable()) answering_.join();
    if (draining_.joinable()) draining_.join();
    unlink(path_.c_str());
  }

  const std::string& path() const { return path_; }
  sphase_ring* ring() { return ring_.get(); }
  std::uint64_t dropped() { return __atomic_load_n(&ring()->dropped, __ATOMIC_RELAXED); }
  int clients() const { return clients_; }

  std::vector<Marker> markers() {
    const std::scoped_lock lock(mutex_);
    return markers_;
  }

  /// All markers, once there are `count` of them, or what there is after 10 s.
  std::vector<Marker> markers(std::size_t count) {
    for (int i = 0; i < 10'000 && markers().size() < count; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return markers();
  }

  /// All markers, once everything in the ring has been read, or what there is after 10 s.
  std::vector<Marker> all_markers() {
    for (int i = 0; i < 10'000 && !is_settled(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return markers();
  }
  bool is_settled() {
    return __atomic_load_n(&ring()->tail, __ATOMIC_ACQUIRE) ==
           __atomic_load_n(&ring()->head, __ATOMIC_ACQUIRE);
  }

  /// For a reader that does not drain by itself.
  void drain_once() {
    reader_.drain([this](const sphase_record& record) { keep(record); });
  }

  /// Counts records instead of keeping them: for millions.
  void only_count() { only_count_ = true; }
  std::uint64_t counted() const { return counted_; }

 private:
  void listen_here() {
    const char* base = std::getenv("TMPDIR");
    directory_ =
        std::string(base != nullptr ? base : "/tmp") + "/sphase-test-" + std::string(6, 'X');
    if (mkdtemp(directory_.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = directory_ + "/s";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), std::min<std::size_t>(path_.size(), 107));
    listen_fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    stop_fd_ = eventfd(0, EFD_CLOEXEC);
    const bool full = setup_.answer == Answer::kNoAccept || setup_.accept_after_ms > 0;
    const int backlog = full ? 0 : 64;
    if (bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(listen_fd_, backlog) != 0) {
      throw std::runtime_error("cannot listen at " + path_);
    }
    if (full) {  // so that connect() waits
      kept_.push_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      if (connect(kept_.back(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        throw std::runtime_error("connect");
      }
    }
  }

  void answer_all() {
    if (setup_.accept_after_ms > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(setup_.accept_after_ms));
      shutdown(kept_.back(), SHUT_RDWR);  // a child has it open, too
      close(kept_.back());
      kept_.pop_back();
    }
    while (!stop_) {
      pollfd fds[2] = {{stop_fd_, POLLIN, 0}, {listen_fd_, POLLIN, 0}};
      poll(fds, setup_.answer == Answer::kNoAccept ? 1 : 2, -1);
      if (fds[1].revents == 0) continue;
      const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      answer(fd);
    }
  }

  void answer(int fd) {
    sphase_hello hello{};
    if (setup_.answer == Answer::kHangUp ||
        recv(fd, &hello, sizeof hello, 0) != static_cast<ssize_t>(sizeof hello)) {
      close(fd);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(setup_.answer_after_ms));
    sphase_welcome welcome{};
    welcome.magic = SPHASE_RING_MAGIC;
    welcome.version = SPHASE_WIRE_VERSION + (setup_.answer == Answer::kOtherVersion ? 1 : 0);
    welcome.client = static_cast<std::uint32_t>(++clients_);
    welcome.capacity = setup_.told_capacity != 0 ? setup_.told_capacity : setup_.capacity;
    if (setup_.answer == Answer::kGarbage) std::memset(&welcome, 0x5a, sizeof welcome);
    if (setup_.answer == Answer::kNothing) {
      kept_.push_back(fd);
      return;
    }
    send_welcome(fd, welcome);
    close(fd);
  }

  void send_welcome(int fd, sphase_welcome& welcome) {
    const std::size_t memfds = setup_.answer == Answer::kNoDescriptor ? 0
                               : setup_.answer == Answer::kTwoMemfds  ? 2
                                                                      : 1;
    const int passed[2] = {ring_.fd(), ring_.fd()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof passed)] = {};
    const bool half = setup_.answer == Answer::kShort;
    iovec part{&welcome, half ? sizeof welcome / 2 : sizeof welcome};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (memfds > 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(memfds * sizeof(int));
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(memfds * sizeof(int));
      std::memcpy(CMSG_DATA(head), passed, memfds * sizeof(int));
    }
    sendmsg(fd, &message, MSG_NOSIGNAL);
  }

  void drain_all() {
    using namespace std::chrono_literals;
    while (!stop_) {
      const auto start = std::chrono::steady_clock::now();
      const auto n = reader_.drain([this](const sphase_record& record) { keep(record); });
      if (setup_.nap_ms > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(setup_.nap_ms));
      } else if (n > 0 && setup_.bounded_duty) {
        const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
        std::this_thread::sleep_for(std::clamp<std::chrono::nanoseconds>(9 * took, 100us, 10ms));
      } else if (n == 0) {
        reader_.wait_for_bell(20);
      }
    }
  }

  void keep(const sphase_record& record) {
    ++counted_;
    if (only_count_) return;
    const std::size_t length = std::min<std::size_t>(record.text_len, SPHASE_TEXT_BYTES);
    const std::scoped_lock lock(mutex_);
    markers_.push_back({record, std::string(record.text, length)});
  }

  const FakeSetup setup_;
  FakeRing ring_;
  RingReader reader_;
  std::string directory_;
  std::string path_;
  int listen_fd_ = -1;
  int stop_fd_ = -1;
  std::vector<int> kept_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> only_count_ = false;
  std::atomic<std::uint64_t> counted_ = 0;
  std::atomic<int> clients_ = 0;
  std::mutex mutex_;
  std::vector<Marker> markers_;
  std::thread answering_;
  std::thread draining_;
};

}  // namespace sphase::testing

#include "spank/recorder/app_socket.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <cstring>
#include <thread>

#include "common/ring.h"
#include "spank/recorder/phases/ring_reader.h"
#include "tests/common/tools.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// A socket that is served by a thread of its own.
class Served {
 public:
  explicit Served(std::uint32_t uid = getuid()) : ring_(std::move(*RingReader::create(16))) {
    auto opened = AppSocket::open(io_, path(), uid, getgid(), ring_.memfd(), 16, [this](int pid) {
      last_pid = pid;
      return refuse ? 0 : ++clients;
    });
    REQUIRE_MESSAGE(opened, (opened ? "" : opened.error()));
    socket_ = std::move(*opened);
    work_.emplace(boost::asio::make_work_guard(io_));
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Served() {
    boost::asio::post(io_, [this] { socket_.reset(); });
    work_.reset();
    thread_.join();
  }
  std::string path() const { return folder_ / "run/s-1"; }
  std::string folder() const { return folder_.path(); }
  /// Ends the socket as the recorder does at the end of a step, while its loop goes on.
  void end_socket() {
    std::atomic<bool> done{false};
    boost::asio::post(io_, [&] {
      socket_.reset();
      done = true;
    });
    REQUIRE(poll_until([&] { return done.load(); }));
  }

  std::atomic<std::uint32_t> clients{0};
  std::atomic<int> last_pid{0};
  std::atomic<bool> refuse{false};

 private:
  TempFolder folder_;
  boost::asio::io_context io_{1};
  RingReader ring_;
  std::unique_ptr<AppSocket> socket_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  std::thread thread_;
};

Fd connect_to(const std::string& path) {
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return {};
  return fd;
}

bool say(const Fd& fd, const sphase_hello& hello) {
  return send(fd.get(), &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello);
}
sphase_hello right_hello() { return {SPHASE_RING_MAGIC, SPHASE_WIRE_VERSION, 0}; }

/// What came back: the welcome and how many descriptors; nothing if the connection was closed.
struct Answer {
  bool came = false;
  sphase_welcome welcome{};
  int descriptors = 0;
  bool is_a_ring = false;
};

Answer answer_on(const Fd& fd, int limit_ms = 5000) {
  Answer answer;
  pollfd ready{fd.get(), POLLIN, 0};
  if (poll(&ready, 1, limit_ms) <= 0) return answer;
  iovec part{&answer.welcome, sizeof(answer.welcome)};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(fd.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof(answer.welcome)) {
    return answer;
  }
  answer.came = true;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_type != SCM_RIGHTS) continue;
    int memfd = -1;
    std::memcpy(&memfd, CMSG_DATA(head), sizeof(memfd));
    ++answer.descriptors;
    answer.is_a_ring = (fcntl(memfd, F_GET_SEALS) & F_SEAL_SHRINK) != 0;
    close(memfd);
  }
  return answer;
}

Answer join(const std::string& path) {
  const Fd fd = connect_to(path);
  if (!fd || !say(fd, right_hello())) return {};
  return answer_on(fd);
}

}  // namespace

TEST_CASE("a program that says hello gets a number and the ring") {
  Served served;
  const Answer first = join(served.path());
  REQUIRE(first.came);
  CHECK(first.welcome.magic == SPHASE_RING_MAGIC);
  CHECK(first.welcome.version == SPHASE_WIRE_VERSION);
  CHECK(first.welcome.client == 1);
  CHECK(first.welcome.capacity == 16);
  CHECK(first.descriptors == 1);
  CHECK(first.is_a_ring);
  CHECK(served.last_pid == getpid());
  CHECK(join(served.path()).welcome.client == 2);
}

TEST_CASE("the socket is its user's alone, in a folder that all may pass and none may list") {
  Served served;
  struct stat found {};
  REQUIRE(stat(served.path().c_str(), &found) == 0);
  CHECK(S_ISSOCK(found.st_mode));
  CHECK((found.st_mode & 07777) == 0600);
  CHECK(found.st_uid == getuid());
  CHECK(mode_of(served.folder() + "/run") == 0711);
}

TEST_CASE("the socket is given to the job's user, and is gone with its server (needs root)") {
  if (getuid() != 0) {
    MESSAGE("skipped: only root can give a socket to another user");
    return;
  }
  std::string path;
  {
    Served served(65534);
    path = served.path();
    struct stat found {};
    REQUIRE(stat(path.c_str(), &found) == 0);
    CHECK(found.st_uid == 65534);
  }
  CHECK(access(path.c_str(), F_OK) != 0);
}

TEST_CASE(
    "a process of another user is refused, even where the file would let it in (needs root)") {
  if (getuid() != 0) {
    MESSAGE("skipped: only root can become another user");
    return;
  }
  Served served(0);
  chmod(served.folder().c_str(), 0755);
  REQUIRE(chmod(served.path().c_str(), 0666) == 0);
  const int code = in_child([&] {
    if (setgid(65534) != 0 || setuid(65534) != 0) return 1;
    return join(served.path()).came ? 2 : 0;
  });
  CHECK(code == 0);
  CHECK(served.clients == 0);
  CHECK(join(served.path()).came);
}

TEST_CASE("without that file mode another user cannot even connect (needs root)") {
  if (getuid() != 0) {
    MESSAGE("skipped: only root can become another user");
    return;
  }
  Served served(0);
  chmod(served.folder().c_str(), 0755);
  CHECK(in_child([&] {
          if (setgid(65534) != 0 || setuid(65534) != 0) return 1;
          return connect_to(served.path()) ? 2 : 0;
        }) == 0);
}

TEST_CASE("a hello that is wrong is answered by closing") {
  Served served;
  sphase_hello other_version = right_hello();
  other_version.version = 99;
  sphase_hello other_magic = right_hello();
  other_magic.magic = 1;
  for (const sphase_hello& wrong : {other_version, other_magic}) {
    const Fd fd = connect_to(served.path());
    CHECK(say(fd, wrong));
    CHECK_FALSE(answer_on(fd).came);
  }
  for (const std::size_t size : {std::size_t{1}, sizeof(sphase_hello) - 1, std::size_t{4000}}) {
    const Fd fd = connect_to(served.path());
    const std::string garbage(size, '\x5a');
    CHECK(send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(size));
    CHECK_FALSE(answer_on(fd).came);
  }
  CHECK(served.clients == 0);
  CHECK(join(served.path()).came);
}

TEST_CASE("descriptors sent along with a hello do not stay") {
  Served served;
  const Fd fd = connect_to(served.path());
  sphase_hello hello = right_hello();
  iovec part{&hello, sizeof(hello)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  std::memcpy(CMSG_DATA(head), &ends[1], sizeof(int));
  REQUIRE(sendmsg(fd.get(), &message, MSG_NOSIGNAL) == sizeof(hello));
  close(ends[1]);
  CHECK(answer_on(fd).came);
  char byte = 0;  // end of file: nobody has the other end any more
  CHECK(poll_until([&] { return read(ends[0], &byte, 1) == 0; }));
  close(ends[0]);
}

TEST_CASE("a peer that stays silent holds up nobody, and is closed after a second") {
  Served served;
  const Fd silent = connect_to(served.path());
  REQUIRE(silent);
  CHECK(join(served.path()).came);
  pollfd closed{silent.get(), POLLIN, 0};
  CHECK(poll(&closed, 1, 10'000) == 1);
  CHECK_FALSE(answer_on(silent).came);
}

TEST_CASE("a peer that is gone before its answer does no harm") {
  Served served;
  for (int i = 0; i < 50; ++i) {
    const Fd fd = connect_to(served.path());
    if (i % 2 == 0) (void)say(fd, right_hello());
  }
  CHECK(join(served.path()).came);
}

TEST_CASE("two hundred programs that come at once are all welcome") {
  Served served;
  std::vector<Fd> all;
  for (int i = 0; i < 200; ++i) {
    // The backlog is finite: a program waits in connect() until there is room.
    all.push_back(connect_to(served.path()));
    REQUIRE(all.back());
  }
  for (const Fd& fd : all) REQUIRE(say(fd, right_hello()));
  std::vector<bool> seen(201, false);
  for (const Fd& fd : all) {
    const Answer answer = answer_on(fd);
    REQUIRE(answer.came);
    REQUIRE(answer.welcome.client <= 200);
    CHECK_FALSE(seen[answer.welcome.client]);
    seen[answer.welcome.client] = true;
  }
}

TEST_CASE("silent peers beyond a limit are closed at once, and do not pile up") {
  Served served;
  std::vector<Fd> silent;
  silent.reserve(AppSocket::kMostWaiting + 50);
  for (int i = 0; i < AppSocket::kMostWaiting + 50; ++i)
    silent.push_back(connect_to(served.path()));
  int closed = 0;
  CHECK(poll_until([&] {
    closed = 0;
    for (const Fd& fd : silent) {
      pollfd ready{fd.get(), POLLIN, 0};
      if (poll(&ready, 1, 0) == 1) ++closed;
    }
    return closed >= 50;
  }));
  // And after their second there is room again.
  CHECK(poll_until([&] { return join(served.path()).came; }, 10'000));
}

TEST_CASE("a program that is refused a number gets no ring") {
  Served served;
  served.refuse = true;
  CHECK_FALSE(join(served.path()).came);
}

TEST_CASE("a hello that comes after the end of the step meets nobody") {
  Served served;
  const Fd early = connect_to(served.path());
  REQUIRE(early);
  CHECK(join(served.path()).came);  // so that the one before has been accepted
  served.end_socket();
  (void)say(early, right_hello());
  CHECK_FALSE(answer_on(early, 200).came);
  CHECK_FALSE(connect_to(served.path()));
}

TEST_CASE("a path that is too long, taken, or in no folder is an error that names it") {
  boost::asio::io_context io(1);
  const TempFolder folder;
  const auto open = [&](const std::string& path) {
    return AppSocket::open(io, path, getuid(), getgid(), -1, 16, [](int) { return 1u; });
  };
  const auto too_long = open(folder / std::string(200, 'x'));
  REQUIRE_FALSE(too_long);
  CHECK(too_long.error().find("too long") != std::string::npos);
  const auto taken = open(folder.write("taken", "x"));
  REQUIRE_FALSE(taken);
  CHECK(taken.error().find("cannot make " + (folder / "taken")) == 0);
  CHECK(text_of(folder / "taken") == "x");
  const auto nowhere = open(folder / "a/b/c");
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().find("cannot make " + (folder / "a/b")) == 0);
}

TEST_CASE("out of descriptors, the server waits and then goes on") {
  Served served;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const Fd waiting = connect_to(served.path());
  REQUIRE(waiting);
  CHECK(join(served.path()).came);
  Fd late(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  std::vector<Fd> all;
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(late.get()) + 3;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  while (true) {
    Fd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd) break;
    all.push_back(std::move(fd));
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, served.path().c_str(), served.path().size() + 1);
  const int connected = connect(late.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  const bool said = say(late, right_hello());
  all.clear();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(connected == 0);
  CHECK(said);
  CHECK(answer_on(late).came);
}

#include "spank/recorder/app_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <chrono>
#include <cstring>

#include "common/ring.h"

namespace sphase {

namespace asio = boost::asio;

/// One process that has connected and has yet to say hello.
class AppSocket::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& io, Fd fd, std::shared_ptr<int> waiting)
      : socket_(io, fd.release()), deadline_(io), waiting_(std::move(waiting)) {
    ++*waiting_;
  }
  ~Connection() { --*waiting_; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void run(std::function<bool(int)> welcome) {
    deadline_.expires_after(std::chrono::seconds(1));
    deadline_.async_wait([self = shared_from_this()](boost::system::error_code cancelled) {
      if (!cancelled) self->socket_.cancel();
    });
    socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [self = shared_from_this(),
                        welcome = std::move(welcome)](boost::system::error_code failed) {
                         self->deadline_.cancel();
                         if (!failed) welcome(self->socket_.native_handle());
                       });
  }

 private:
  asio::posix::stream_descriptor socket_;
  asio::steady_timer deadline_;
  std::shared_ptr<int> waiting_;
};

Result<std::unique_ptr<AppSocket>> AppSocket::open(asio::io_context& io, const std::string& path,
                                                   std::uint32_t uid, std::uint32_t gid,
                                                   int ring_fd, std::uint32_t capacity,
                                                   AddClient add_client) {
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return errno_error("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return Error{path + " is too long for a socket"};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // The folder lets everybody through but shows nobody what is in it.
  const std::string folder = path.substr(0, path.rfind('/'));
  if (mkdir(folder.c_str(), 0711) == 0) {
    chmod(folder.c_str(), 0711);
  } else if (errno != EEXIST) {
    return errno_error("cannot make " + folder);
  }
  const mode_t before = umask(0177);
  const int bound =
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  umask(before);
  if (bound != 0) return errno_error("cannot make " + path);
  if (lchown(path.c_str(), uid, gid) != 0 || ::listen(listener.get(), 128) != 0) {
    const Error failed = errno_error("cannot serve " + path);
    unlink(path.c_str());
    return failed;
  }
  return std::unique_ptr<AppSocket>(
      new AppSocket(io, std::move(listener), path, uid, ring_fd, capacity, std::move(add_client)));
}

AppSocket::AppSocket(asio::io_context& io, Fd listener, std::string path, std::uint32_t uid,
                     int ring_fd, std::uint32_t capacity, AddClient add_client)
    : io_(io),
      listener_(io, listener.release()),
      later_(io),
      path_(std::move(path)),
      uid_(uid),
      ring_fd_(ring_fd),
      capacity_(capacity),
      add_client_(std::move(add_client)) {
  accept_next();
}

AppSocket::~AppSocket() { unlink(path_.c_str()); }

void AppSocket::accept_next() {
  listener_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [self = std::weak_ptr(self_)](boost::system::error_code failed) {
                         const auto alive = self.lock();
                         if (alive != nullptr && !failed) (*alive)->accept_one();
                       });
}

void AppSocket::accept_one() {
  Fd fd(::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) return accept_later();
  if (fd && *waiting_ < kMostWaiting) {
    std::make_shared<Connection>(io_, std::move(fd), waiting_)
        ->run([self = std::weak_ptr(self_)](int connection) {
          const auto alive = self.lock();
          return alive != nullptr && (*alive)->welcome(connection);
        });
  }
  accept_next();
}

/// Out of descriptors: the peer stays ready, and to ask at once again would take a whole CPU.
void AppSocket::accept_later() {
  later_.expires_after(std::chrono::milliseconds(10));
  later_.async_wait([self = std::weak_ptr(self_)](boost::system::error_code cancelled) {
    const auto alive = self.lock();
    if (alive != nullptr && !cancelled) (*alive)->accept_next();
  });
}

/// Reads the hello, checks who is there, hands out the ring. Closing is the caller's.
bool AppSocket::welcome(int connection) {
  sphase_hello hello{};
  if (::recv(connection, &hello, sizeof(hello), MSG_DONTWAIT) != sizeof(hello) ||
      hello.magic != SPHASE_RING_MAGIC || hello.version != SPHASE_WIRE_VERSION) {
    return false;
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != uid_) {
    return false;
  }
  sphase_welcome answer{};
  answer.magic = SPHASE_RING_MAGIC;
  answer.version = SPHASE_WIRE_VERSION;
  answer.client = add_client_(peer.pid);
  answer.capacity = capacity_;
  if (answer.client == 0) return false;

  iovec data{&answer, sizeof(answer)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &ring_fd_, sizeof(int));
  return ::sendmsg(connection, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(answer);
}

}  // namespace sphase

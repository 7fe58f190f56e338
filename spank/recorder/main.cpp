// sphase-recorder: records one step on one node. Started by the SPANK plugin with its end of a
// socketpair as descriptor 3 (spank/recorder_link.h); ends when the step does.
//
// Threads: main (Boost.Asio: the plugin's link, the programs' socket), edge (markers and samples,
// real-time where allowed), store (node.db).
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>

#include "common/vocabulary.h"
#include "spank/recorder/app_socket.h"
#include "spank/recorder/own_process.h"
#include "spank/recorder/session.h"
#include "spank/recorder/store/store_thread.h"
#include "spank/recorder_link.h"

namespace sphase {
namespace {

namespace asio = boost::asio;

constexpr int kLinkFd = 3;
constexpr unsigned kLastSeconds = 10;  // to store what is left once the step is over

class Recorder {
 public:
  Recorder(asio::io_context& io, const sphase_link_start& start, RingReader ring)
      : io_(io),
        link_(io, kLinkFd),
        start_(start),
        tree_(CgroupTree::read()),
        session_(start, tree_, std::move(ring), getpid(),
                 open_papi_source(start.events, start.run_dir)) {
    listen();
    edges_ = std::thread([this] {
      const std::string why = become_realtime();
      if (!why.empty()) {
        session_.notice(notice::kNoRealtime,
                        "no real-time priority (" + why + "): on a busy node edges are read late");
      }
      session_.run_edges();
    });
    store_ = std::make_unique<StoreThread>(start_, session_);
    receive_next();
  }

  ~Recorder() {
    session_.stop();
    edges_.join();
  }

 private:
  void listen() {
    auto socket = AppSocket::open(io_, start_.socket_path, start_.uid, start_.gid,
                                  session_.ring_fd(), session_.ring_capacity(), [this](int pid) {
                                    store_->soon();
                                    return session_.add_client(pid);
                                  });
    if (socket) {
      apps_ = std::move(*socket);
    } else {
      session_.notice(notice::kSource, "programs cannot mark phases: " + socket.error());
    }
  }

  void receive_next() {
    link_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](boost::system::error_code failed) {
                       if (failed || !receive()) return;
                       receive_next();
                     });
  }

  /// False when there is nothing more to come.
  bool receive() {
    sphase_link_task message{};
    const ssize_t size = ::recv(kLinkFd, &message, sizeof(message), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (size != sizeof(message)) {
      end("slurmstepd vanished");
      return false;
    }
    if (message.type == SPHASE_LINK_RESTARTS) {
      session_.set_restart_count(message.restart_count);
      return true;
    }
    if (message.type == SPHASE_LINK_ATTACH) attach(message);
    if (message.type == SPHASE_LINK_TASK_EXIT) session_.task_exit(message);
    if (message.type == SPHASE_LINK_GOODBYE) session_.finish("step ended");
    acknowledge(message.type, message.task);
    store_->soon();
    if (message.type == SPHASE_LINK_GOODBYE) end("step ended");
    return message.type != SPHASE_LINK_GOODBYE;
  }

  void attach(const sphase_link_task& message) {
    if (!left_groups_) {
      left_groups_ = true;
      const std::string why = leave_job_groups(tree_, static_cast<int>(start_.stepd_pid),
                                               static_cast<int>(message.pid));
      if (!why.empty()) session_.notice(notice::kSource, why);
    }
    session_.attach(message);
  }

  void acknowledge(std::uint32_t type, std::uint32_t task) {
    const sphase_link_ack ack{type, task};
    // If slurmstepd does not take it, it has stopped waiting.
    (void)::send(kLinkFd, &ack, sizeof(ack), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void end(const std::string& reason) {
    end_within(kLastSeconds);
    session_.finish(reason);
    apps_.reset();
    store_->finish([this] {
      asio::post(io_, [this] {
        acknowledge(SPHASE_LINK_STORED, 0);
        io_.stop();
      });
    });
  }

  asio::io_context& io_;
  asio::posix::stream_descriptor link_;
  sphase_link_start start_;
  const CgroupTree tree_;
  Session session_;
  std::unique_ptr<AppSocket> apps_;
  std::unique_ptr<StoreThread> store_;
  std::thread edges_;
  bool left_groups_ = false;
};

int usage() {
  std::fputs(
      "sphase-recorder records one step on one node. The SPANK plugin phase_telemetry starts it;\n"
      "it is of no use by hand. To record a job: srun --phase-telemetry COMMAND\n",
      stderr);
  return 2;
}

/// Strings of the plugin end in NUL, but this costs nothing.
void terminate_strings(sphase_link_start& start) {
  for (auto [text, size] : {std::pair<char*, std::size_t>{start.step, sizeof(start.step)},
                            {start.cluster, sizeof(start.cluster)},
                            {start.node, sizeof(start.node)},
                            {start.job_name, sizeof(start.job_name)},
                            {start.partition, sizeof(start.partition)},
                            {start.account, sizeof(start.account)},
                            {start.slurm_version, sizeof(start.slurm_version)},
                            {start.options, sizeof(start.options)},
                            {start.events, sizeof(start.events)},
                            {start.profile, sizeof(start.profile)},
                            {start.socket_path, sizeof(start.socket_path)},
                            {start.node_db, sizeof(start.node_db)},
                            {start.run_dir, sizeof(start.run_dir)}}) {
    text[size - 1] = '\0';
  }
}

int record() {
  sphase_link_start start{};
  const ssize_t size = ::recv(kLinkFd, &start, sizeof(start), 0);
  if (size != sizeof(start) || start.type != SPHASE_LINK_START ||
      start.version != SPHASE_LINK_VERSION) {
    return usage();
  }
  terminate_strings(start);
  auto ring = RingReader::create();
  if (!ring) return 1;
  asio::io_context io(1);
  const Recorder recorder(io, start, std::move(*ring));
  io.run();
  return 0;
}

}  // namespace
}  // namespace sphase

int main(int argc, char**) {
  if (argc > 1) return sphase::usage();
  sphase::reset_process();
  try {
    return sphase::record();
  } catch (const std::exception& error) {  // out of memory, or a bug
    std::fprintf(stderr, "sphase: recorder: %s\n", error.what());
    return 1;
  }
}

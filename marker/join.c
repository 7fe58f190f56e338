/* SPDX-License-Identifier: MIT
 *
 * The recorder may be stopped, slow, or not be a recorder at all: every wait here ends at one
 * deadline, and the memory it hands us is used only if it cannot shrink under our feet.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "marker/internal.h"

#ifndef F_GET_SEALS /* glibc < 2.27 */
#define F_GET_SEALS 1034
#define F_SEAL_SHRINK 0x0002
#endif

#define MAX_CAPACITY 65536u

/* The mapping of this process, or after fork that of its parent; not on the page that fork wipes,
 * so that a child can map over it and a chain of forks does not pile mappings up. */
static void* mapping;
static size_t mapping_bytes;

/* Lets the socket's next call wait until the deadline, no longer. */
static int limit_wait(int fd, int option, int64_t deadline_ns) {
  const int64_t left_ns = deadline_ns - sphase_now_ns(CLOCK_MONOTONIC);
  if (left_ns <= 0) {
    errno = EAGAIN; /* as the call itself would say */
    return -1;
  }
  struct timeval left = {.tv_sec = (time_t)(left_ns / 1000000000),
                         .tv_usec = (suseconds_t)(left_ns % 1000000000 / 1000 + 1)};
  if (left.tv_usec == 1000000) left.tv_usec = 999999;
  return setsockopt(fd, SOL_SOCKET, option, &left, sizeof left);
}

static int dial(int fd, const char* path, int64_t deadline_ns) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const size_t length = strlen(path);
  if (length >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(address.sun_path, path, length);
  int rc;
  do {
    if (limit_wait(fd, SO_SNDTIMEO, deadline_ns) != 0) return -1;
    rc = connect(fd, (const struct sockaddr*)&address, sizeof address);
  } while (rc != 0 && errno == EINTR);
  return rc;
}

static int send_hello(int fd, int64_t deadline_ns) {
  const struct sphase_hello hello = {.magic = SPHASE_RING_MAGIC, .version = SPHASE_WIRE_VERSION};
  ssize_t n;
  do {
    if (limit_wait(fd, SO_SNDTIMEO, deadline_ns) != 0) return -1;
    n = send(fd, &hello, sizeof hello, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n == (ssize_t)sizeof hello ? 0 : -1;
}

/* Keeps the first descriptor of the message; closes all others. -1: there was none. */
static int take_descriptor(struct msghdr* message) {
  int kept = -1;
  for (struct cmsghdr* part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t bytes = part->cmsg_len - CMSG_LEN(0);
    for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
      int fd;
      memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
      if (kept < 0) {
        kept = fd;
      } else {
        close(fd);
      }
    }
  }
  return kept;
}

/* Returns the memfd, or -1. */
static int receive_welcome(int fd, struct sphase_welcome* welcome, int64_t deadline_ns) {
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec part = {.iov_base = welcome, .iov_len = sizeof *welcome};
  struct msghdr message;
  ssize_t n;
  do {
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    if (limit_wait(fd, SO_RCVTIMEO, deadline_ns) != 0) return -1;
    n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return -1;
  const int memfd = take_descriptor(&message);
  if (memfd >= 0 && n == (ssize_t)sizeof *welcome && welcome->magic == SPHASE_RING_MAGIC &&
      welcome->version == SPHASE_WIRE_VERSION) {
    return memfd;
  }
  if (memfd >= 0) close(memfd);
  errno = EPROTO;
  return -1;
}

static int exchange(const char* path, struct sphase_welcome* welcome) {
  const int64_t deadline_ns = sphase_now_ns(CLOCK_MONOTONIC) + SPHASE_JOIN_LIMIT_NS;
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int memfd = -1;
  if (dial(fd, path, deadline_ns) == 0 && send_hello(fd, deadline_ns) == 0) {
    memfd = receive_welcome(fd, welcome, deadline_ns);
  }
  const int saved = errno;
  close(fd);
  errno = saved;
  return memfd;
}

/* The size is read by lseek, since fstat would bind the library to glibc 2.33. */
static int is_usable(int memfd, uint32_t capacity, size_t bytes) {
  if (capacity == 0 || capacity > MAX_CAPACITY || (capacity & (capacity - 1)) != 0) return 0;
  const int seals = fcntl(memfd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return 0;
  return lseek(memfd, 0, SEEK_END) >= (off_t)bytes;
}

static struct sphase_ring* map_ring(int memfd, uint32_t capacity) {
  const size_t bytes = SPHASE_RING_HEADER_BYTES + (size_t)capacity * SPHASE_RECORD_BYTES;
  if (!is_usable(memfd, capacity, bytes)) return NULL;
  const int over = mapping != NULL && mapping_bytes == bytes;
  void* address = mmap(over ? mapping : NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | (over ? MAP_FIXED : 0), memfd, 0);
  if (address == MAP_FAILED) return NULL;
  mapping = address;
  mapping_bytes = bytes;
  struct sphase_ring* ring = address;
  if (ring->magic != SPHASE_RING_MAGIC || ring->version != SPHASE_WIRE_VERSION ||
      ring->capacity != capacity) {
    return NULL; /* stays mapped: harmless, and a child maps over it */
  }
  return ring;
}

enum sphase_join_result sphase_join(struct sphase_process* process, const char* path) {
  struct sphase_welcome welcome;
  memset(&welcome, 0, sizeof welcome);
  const int memfd = exchange(path, &welcome);
  if (memfd < 0) {
    return errno == EAGAIN || errno == EWOULDBLOCK ? SPHASE_JOIN_TIMED_OUT : SPHASE_NOT_JOINED;
  }
  struct sphase_ring* ring = map_ring(memfd, welcome.capacity);
  close(memfd);
  if (ring == NULL) return SPHASE_NOT_JOINED;
  process->client = welcome.client;
  process->ring = ring;
  process->index_mask = welcome.capacity - 1;
  return SPHASE_JOINED;
}

/* A program that means harm: it joins the recorder of its own step like any other and then breaks
 * every promise that the marker library keeps (common/ring.h).
 *
 *   hostile knock PATH            joins the recorder at PATH; says what came of it
 *   hostile crowd COUNT           COUNT processes join, and as many connections say nothing
 *   hostile forge SECONDS         well-formed markers in the name of clients that it is not
 *   hostile flood SECONDS         markers of its own with random names, threads, depths and times
 *   hostile scribble SECONDS      random bytes over the whole ring, header and all
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/ring.h"

enum { kScribblers = 2 };

struct joined {
  struct sphase_ring* ring;
  size_t bytes;
  uint32_t client;
  uint32_t capacity;
};

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t random_word(uint64_t* state) { /* xorshift64 */
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static int dial(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (fd < 0 || strlen(path) >= sizeof(address.sun_path)) return -1;
  memcpy(address.sun_path, path, strlen(path));
  if (connect(fd, (const struct sockaddr*)&address, sizeof(address)) == 0) return fd;
  close(fd);
  return -1;
}

/* The memfd, or -1: refused. */
static int ask(int fd, struct sphase_welcome* welcome) {
  const struct sphase_hello hello = {.magic = SPHASE_RING_MAGIC, .version = SPHASE_WIRE_VERSION};
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec part = {welcome, sizeof(*welcome)};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof(control)};
  int memfd = -1;
  if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) != (ssize_t)sizeof(hello) ||
      recvmsg(fd, &message, 0) != (ssize_t)sizeof(*welcome)) {
    return -1;
  }
  const struct cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != NULL) memcpy(&memfd, CMSG_DATA(header), sizeof(memfd));
  return memfd;
}

static int join(const char* path, struct joined* out) {
  struct sphase_welcome welcome;
  const int fd = dial(path);
  const int memfd = fd < 0 ? -1 : ask(fd, &welcome);
  if (fd >= 0) close(fd);
  if (memfd < 0) return -1;
  out->bytes = SPHASE_RING_HEADER_BYTES + (size_t)welcome.capacity * SPHASE_RECORD_BYTES;
  out->ring = mmap(NULL, out->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  out->client = welcome.client;
  out->capacity = welcome.capacity;
  /* Nor can it be cut under the recorder's feet. */
  if (ftruncate(memfd, 0) == 0) puts("the ring could be cut");
  close(memfd);
  return out->ring == MAP_FAILED ? -1 : 0;
}

static int knock(const char* path) {
  struct joined in;
  if (join(path, &in) == 0) {
    puts("came in");
  } else {
    printf("kept out: %s\n", strerror(errno));
  }
  return 0;
}

static int crowd(const char* path, int count) {
  struct joined in;
  for (int i = 0; i < count; ++i) dial(path); /* left open */
  int taken_in = 0;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(join(path, &in) == 0 ? 0 : 1);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    taken_in += child > 0 && status == 0;
  }
  printf("taken in: %d of %d\n", taken_in, count);
  return 0;
}

static void ring_bell(struct sphase_ring* ring) {
  __atomic_store_n(&ring->bell, 0, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &ring->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static struct sphase_record* claim(const struct joined* in, uint64_t* position) {
  struct sphase_record* const records =
      (struct sphase_record*)((char*)in->ring + SPHASE_RING_HEADER_BYTES);
  uint64_t at = __atomic_load_n(&in->ring->head, __ATOMIC_RELAXED);
  struct sphase_record* const slot = &records[at & (in->capacity - 1)];
  if (__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) != at) return NULL;
  __atomic_store_n(&in->ring->head, at + 1, __ATOMIC_RELAXED);
  *position = at;
  return slot;
}

/* Every kind of marker, with times and CPU stamps from anywhere: in the name of every client but
 * our own; or in our own, and then with a random text too. */
static void forge(const struct joined* in, int as_others, int64_t until_ns) {
  uint64_t random = 88172645463325252u;
  while (now_ns() < until_ns) {
    uint64_t position = 0;
    struct sphase_record* const slot = claim(in, &position);
    if (slot == NULL) continue;
    const uint64_t word = random_word(&random);
    slot->time_ns = random_word(&random);
    slot->cpu_time_ns = random_word(&random);
    slot->client = in->client + (as_others ? 1 + (uint32_t)(word % 64) : 0);
    slot->tid = (uint32_t)(word >> 8) % 1000;
    slot->type = (uint8_t)(1 + (word >> 32) % 4);
    slot->flags = (uint8_t)(word >> 40);
    slot->depth = (uint16_t)(word >> 48);
    slot->text_len = (uint8_t)(word >> 16);
    memcpy(slot->text, "forged", 6);
    for (size_t i = 6; !as_others && i < SPHASE_TEXT_BYTES; ++i) {
      slot->text[i] = (char)random_word(&random);
    }
    __atomic_store_n(&slot->seq, position + 1, __ATOMIC_RELEASE);
    ring_bell(in->ring);
  }
}

struct scribbler {
  const struct joined* in;
  int64_t until_ns;
  uint64_t random;
};

static void* scribble(void* argument) {
  struct scribbler* const self = argument;
  uint64_t* const words = (uint64_t*)(void*)self->in->ring;
  const size_t count = self->in->bytes / sizeof(*words);
  while (now_ns() < self->until_ns) {
    for (size_t i = 0; i < count; ++i) {
      __atomic_store_n(&words[i], random_word(&self->random), __ATOMIC_RELAXED);
    }
    ring_bell(self->in->ring);
  }
  return NULL;
}

static void scribble_all(const struct joined* in, int64_t until_ns) {
  pthread_t others[kScribblers];
  struct scribbler self[kScribblers];
  for (int i = 0; i < kScribblers; ++i) {
    self[i] = (struct scribbler){in, until_ns, 2463534242u + (uint64_t)i};
    pthread_create(&others[i], NULL, scribble, &self[i]);
  }
  for (int i = 0; i < kScribblers; ++i) pthread_join(others[i], NULL);
}

int main(int argc, char** argv) {
  const char* const path = getenv(SPHASE_SOCKET_ENV);
  struct joined in;
  if (argc != 3) return 2;
  if (strcmp(argv[1], "knock") == 0) return knock(argv[2]);
  if (path == NULL) return 3;
  if (strcmp(argv[1], "crowd") == 0) return crowd(path, atoi(argv[2]));
  if (join(path, &in) != 0) return 4;
  puts("joined");
  fflush(stdout);
  const int64_t until_ns = now_ns() + (int64_t)atoi(argv[2]) * 1000000000;
  if (strcmp(argv[1], "forge") == 0) forge(&in, 1, until_ns);
  if (strcmp(argv[1], "flood") == 0) forge(&in, 0, until_ns);
  if (strcmp(argv[1], "scribble") == 0) scribble_all(&in, until_ns);
  return 0;
}

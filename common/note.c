#include "common/note.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kMaxNotes = 1000, kNoteBytes = 1024 };

static int make_dir(const char* path, mode_t mode) {
  if (mkdir(path, mode) == 0 || errno == EEXIST) return 0;
  return errno;
}

static int too_many(const char* dir) {
  DIR* listing = opendir(dir);
  if (listing == NULL) return 0;
  int count = 0;
  while (count <= kMaxNotes && readdir(listing) != NULL) ++count;
  closedir(listing);
  return count > kMaxNotes;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int format_note(char* out, const struct sphase_note* note, int64_t time_ns) {
  int length = snprintf(out, kNoteBytes,
                        "cluster=%s\njob_id=%u\nrestart_count=%u\nstep=%s\nnode=%s\ntime_ns=%lld\n"
                        "code=%s\ntext=",
                        note->cluster, note->job_id, note->restart_count, note->step, note->node,
                        (long long)time_ns, note->code);
  if (length < 0 || length >= kNoteBytes - 2) return -1;
  for (const char* c = note->text; *c != '\0' && length < kNoteBytes - 2; ++c) {
    out[length++] = (*c == '\n' || *c == '\r') ? ' ' : *c;
  }
  out[length++] = '\n';
  return length;
}

int sphase_note_write(const char* run_dir, const struct sphase_note* note) {
  char path[512];
  char bytes[kNoteBytes];

  int failed = make_dir(run_dir, 0711);
  if (failed != 0) return failed;
  if (snprintf(path, sizeof(path), "%s/notes", run_dir) >= (int)sizeof(path)) return ENAMETOOLONG;
  failed = make_dir(path, 0700);
  if (failed != 0) return failed;
  if (too_many(path)) return ENOSPC;

  const int64_t time_ns = now_ns();
  const int length = format_note(bytes, note, time_ns);
  if (length < 0) return EMSGSIZE;
  if (snprintf(path, sizeof(path), "%s/notes/%lld-%d.note", run_dir, (long long)time_ns,
               (int)getpid()) >= (int)sizeof(path)) {
    return ENAMETOOLONG;
  }
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  const ssize_t written = write(file, bytes, (size_t)length);
  failed = written == length ? 0 : (written < 0 ? errno : ENOSPC);
  close(file);
  if (failed != 0) unlink(path);
  return failed;
}

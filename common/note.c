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

/* The mode as told, whatever the umask: a run folder that only root can pass shuts programs out. */
static int make_dir(const char* path, mode_t mode) {
  if (mkdir(path, mode) == 0) return chmod(path, mode) == 0 ? 0 : errno;
  return errno == EEXIST ? 0 : errno;
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

/* Appends KEY=value and a newline; a newline in the value (a job chose it) becomes a space.
 * Returns the new length. The value is cut where the note is full. */
static int append_line(char* out, int length, const char* key, const char* value) {
  const int key_length = (int)strlen(key);
  if (length + key_length + 2 > kNoteBytes) return kNoteBytes;
  memcpy(out + length, key, (size_t)key_length);
  length += key_length;
  out[length++] = '=';
  for (const char* c = value; *c != '\0' && length < kNoteBytes - 1; ++c) {
    out[length++] = (*c == '\n' || *c == '\r') ? ' ' : *c;
  }
  out[length++] = '\n';
  return length;
}

static int append_number(char* out, int length, const char* key, long long value) {
  char text[24];
  snprintf(text, sizeof(text), "%lld", value);
  return append_line(out, length, key, text);
}

/* -1: its names leave no room for a text. */
static int format_note(char* out, const struct sphase_note* note, int64_t time_ns) {
  int length = append_line(out, 0, "cluster", note->cluster);
  length = append_number(out, length, "job_id", note->job_id);
  length = append_number(out, length, "restart_count", note->restart_count);
  length = append_line(out, length, "step", note->step);
  length = append_line(out, length, "node", note->node);
  length = append_number(out, length, "time_ns", time_ns);
  length = append_line(out, length, "code", note->code);
  if (length + (int)sizeof("text=\n") > kNoteBytes) return -1;
  return append_line(out, length, "text", note->text);
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

/* Starts the recorder as a process of its own, out of slurmstepd's sight. */
#ifndef SPHASE_SPANK_SPAWN_H
#define SPHASE_SPANK_SPAWN_H

struct sphase_recorder {
  int link;  /* our end of the socketpair; -1: not running */
  int pidfd; /* -1 where the kernel has none (before 5.3) */
};

/* Runs `path` with the other end of a socketpair as descriptor 3 and nothing else open but
 * /dev/null as 0, 1, 2. The recorder is nobody's child (its parent exits at once), in a session of
 * its own, so that slurmstepd never finds it in a wait() and proctrack/linuxproc not below it.
 * Returns 0 or an errno value; then nothing is left behind.
 * Cost: two vfork() and an exec, 0.3 to 1 ms, whatever the size of slurmstepd. */
int sphase_spawn(const char* path, struct sphase_recorder* out);

/* Closes the link; with `kill_it`, ends the recorder (even a stopped one) by its pidfd, which can
 * never hit another process that got the same number. */
void sphase_recorder_close(struct sphase_recorder* recorder, int kill_it);

#endif

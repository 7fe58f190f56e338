/* SPDX-License-Identifier: MIT
 *
 * Mark the phases of a program, so that sphase can tell what each of them asked for, got and used.
 *
 *     sphase_begin("solve");
 *     sphase_attr("cells", "1000000");
 *     for (...) {
 *       sphase_begin("iterate");
 *       ...
 *       sphase_value("residual", residual);
 *       sphase_end("iterate");
 *     }
 *     sphase_end("solve");
 *
 * Link with -lsphase (C99, C++; needs libc only). Phases nest: the inner one above is recorded as
 * "solve/iterate".
 *
 * What holds for every function here:
 *  - It never fails, prints, or ends the program, and it leaves errno alone.
 *  - When the job runs without sphase, a pair of begin and end costs a few nanoseconds; with it,
 *    about a hundred. Only the first marker of a process takes longer: it joins the recorder of its
 *    step, typically in 0.1 ms and never in more than 50 ms. Threads that mark for the first time
 *    meanwhile wait for that, with the same limit; past the limit they go on unrecorded.
 *  - A marker that finds the ring full is dropped and counted; nothing ever waits for room.
 *  - Any thread may call it. Each thread has phases of its own.
 *  - After fork() the child has no phase open and joins anew at its first marker; a child that
 *    never marks does nothing. Nothing is inherited through exec() but the environment. A child of
 *    vfork() or clone(CLONE_VM) shares its parent's memory and must not mark.
 *  - No file descriptor, thread, signal handler or atfork handler is left in the program.
 *
 * Names are text in UTF-8 of up to 80 bytes; longer ones are cut between two characters. Control
 * characters are recorded as '?'. In a phase's name '/' is recorded as '_', since '/' joins the
 * names of nested phases. A marker whose name is NULL or "" is not recorded.
 */
#ifndef SPHASE_H
#define SPHASE_H

#if defined(__GNUC__)
#define SPHASE_API __attribute__((visibility("default")))
#else
#define SPHASE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a phase inside the innermost one open in this thread. Returns the number of phases that
 * were open in this thread before, so 0 for an outermost phase. Phases nested deeper than 32 are
 * counted, but not recorded. A begin that was not recorded still needs its end. */
SPHASE_API int sphase_begin(const char* name);

/* Closes the innermost phase `name` of this thread, and with it those left open inside it; NULL or
 * "" closes the innermost phase, whatever its name. Where none is open by that name, nothing is
 * closed (and the report says so). Returns the number of phases still open, never less than 0. */
SPHASE_API int sphase_end(const char* name);

/* Records a number, such as a residual, at this moment in the innermost phase. */
SPHASE_API void sphase_value(const char* name, double value);

/* Records a property of the innermost phase, such as its problem size; the last one of a key wins.
 * Key and value share the 80 bytes. NULL as the value means "". */
SPHASE_API void sphase_attr(const char* key, const char* value);

/* 1 if the markers of this process are recorded, else 0. Joins the recorder if no marker has yet.
 */
SPHASE_API int sphase_active(void);

#ifdef __cplusplus
}
#endif

#endif

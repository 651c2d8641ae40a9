/* Counts the calls that create, write, sync, rename, link, truncate or remove a file, and makes one of them fail.

   FAULT_HOW=count         writes the number of calls to the file FAULT_COUNT at exit
   FAULT_HOW=kill          kills the process before call number FAULT_AT
   FAULT_HOW=term          sends SIGTERM to the process before that call
   FAULT_HOW=enospc        lets that call fail: no space is left
   FAULT_HOW=full          lets that call and all later ones fail, but for those on standard output and error
   FAULT_HOW=eio           lets the read number FAULT_AT of the file FAULT_FILE fail: the disk is broken
   FAULT_HOW=dead          lets that read and all later ones fail
   FAULT_HOW=nolock        lets every flock fail: the file system has no locks */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NOTHING, COUNT, KILL, TERM, ENOSPC_ONCE, FULL, EIO_ONCE, DEAD, NO_LOCK };
static int how = NOTHING;
static long at = -1;
static long calls = 0;

__attribute__((constructor)) static void begin(void) {
    const char *wish = getenv("FAULT_HOW"), *place = getenv("FAULT_AT");
    if (!wish) return;
    how = !strcmp(wish, "count")    ? COUNT
          : !strcmp(wish, "kill")   ? KILL
          : !strcmp(wish, "term")   ? TERM
          : !strcmp(wish, "enospc") ? ENOSPC_ONCE
          : !strcmp(wish, "eio")    ? EIO_ONCE
          : !strcmp(wish, "dead")   ? DEAD
          : !strcmp(wish, "nolock") ? NO_LOCK
                                    : FULL;
    at = place ? atol(place) : -1;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("FAULT_COUNT");
    if (how != COUNT || !path) return;
    how = NOTHING;
    FILE *file = fopen(path, "w");
    if (file) {
        fprintf(file, "%ld\n", calls);
        fclose(file);
    }
}

/* Whether the call must fail. Removals need no space. */
static int fault(int fd, int needs_space) {
    if (how == NOTHING || how >= EIO_ONCE) return 0;
    long number = __sync_add_and_fetch(&calls, 1);
    if (how == KILL && number == at) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    if (how == TERM && number == at) kill(getpid(), SIGTERM);
    int is_stream = fd == 1 || fd == 2;
    if (needs_space && ((how == ENOSPC_ONCE && number == at) || (how == FULL && number >= at && !is_stream))) {
        errno = ENOSPC;
        return 1;
    }
    return 0;
}

/* Whether a read must fail. */
static int read_fault(int fd) {
    const char *path = getenv("FAULT_FILE");
    char link[64], found[4096];
    if ((how != EIO_ONCE && how != DEAD) || !path) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, found, sizeof found - 1);
    if (length < 0) return 0;
    found[length] = 0;
    if (strcmp(found, path)) return 0;
    long number = __sync_add_and_fetch(&calls, 1);
    if (how == EIO_ONCE ? number != at : number < at) return 0;
    errno = EIO;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name)                                                                \
    int name(const char *path, int flags, ...) {                                  \
        va_list list;                                                             \
        va_start(list, flags);                                                    \
        mode_t mode = va_arg(list, mode_t);                                       \
        va_end(list);                                                             \
        if ((flags & (O_CREAT | O_TRUNC)) && fault(-1, 1)) return -1;             \
        return REAL(name)(path, flags, mode);                                     \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                              \
    int name(int folder, const char *path, int flags, ...) {                      \
        va_list list;                                                             \
        va_start(list, flags);                                                    \
        mode_t mode = va_arg(list, mode_t);                                       \
        va_end(list);                                                             \
        if ((flags & (O_CREAT | O_TRUNC)) && fault(-1, 1)) return -1;             \
        return REAL(name)(folder, path, flags, mode);                             \
    }
OPENAT(openat)
OPENAT(openat64)

#define WRAP(type, name, fd, space, parameters, arguments)                        \
    type name parameters { return fault(fd, space) ? -1 : REAL(name) arguments; }
WRAP(ssize_t, write, fd, 1, (int fd, const void *bytes, size_t n), (fd, bytes, n))
WRAP(ssize_t, writev, fd, 1, (int fd, const struct iovec *parts, int n), (fd, parts, n))
WRAP(ssize_t, pwrite, fd, 1, (int fd, const void *bytes, size_t n, off_t o), (fd, bytes, n, o))
WRAP(ssize_t, pwrite64, fd, 1, (int fd, const void *bytes, size_t n, off64_t o), (fd, bytes, n, o))
WRAP(int, fsync, fd, 1, (int fd), (fd))
WRAP(int, fdatasync, fd, 1, (int fd), (fd))
WRAP(int, ftruncate, fd, 1, (int fd, off_t n), (fd, n))
WRAP(int, ftruncate64, fd, 1, (int fd, off64_t n), (fd, n))
WRAP(int, posix_fallocate, fd, 1, (int fd, off_t a, off_t n), (fd, a, n))
WRAP(int, rename, -1, 1, (const char *from, const char *to), (from, to))
WRAP(int, renameat, -1, 1, (int a, const char *from, int b, const char *to), (a, from, b, to))
WRAP(int, link, -1, 1, (const char *from, const char *to), (from, to))
WRAP(int, linkat, -1, 1, (int a, const char *from, int b, const char *to, int f), (a, from, b, to, f))
WRAP(int, mkdir, -1, 1, (const char *path, mode_t mode), (path, mode))
WRAP(int, unlink, -1, 0, (const char *path), (path))
WRAP(int, unlinkat, -1, 0, (int folder, const char *path, int f), (folder, path, f))
WRAP(int, fchmod, fd, 0, (int fd, mode_t mode), (fd, mode))

#define READ(type, name, parameters, arguments)                                   \
    type name parameters { return read_fault(fd) ? -1 : REAL(name) arguments; }
READ(ssize_t, read, (int fd, void *bytes, size_t n), (fd, bytes, n))
READ(ssize_t, pread, (int fd, void *bytes, size_t n, off_t o), (fd, bytes, n, o))
READ(ssize_t, pread64, (int fd, void *bytes, size_t n, off_t o), (fd, bytes, n, o))

int flock(int fd, int operation) {
    if (how == NO_LOCK) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return REAL(flock)(fd, operation);
}

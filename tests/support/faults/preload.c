/* A library to preload: it fails the n-th change that a process makes below a folder.

   Dormant until `faulty_arm` is called. Calls that change files are counted: open to write, write, rename, link,
   fsync, ftruncate, mkdir and unlink, by path or by descriptor. `faulty_steps` names those that were counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { COUNT, FAIL, FAIL_FROM_HERE, SHORT, KILL_BEFORE, KILL_AFTER, KILL_INSIDE, INTERRUPT };

static char below[PATH_MAX];
static int armed, kind, error_number;
static long target;
static atomic_long count;
static char steps[1 << 16];

void faulty_arm(const char *folder, long n, int what, int error) {
    snprintf(below, sizeof below, "%s", folder);
    target = n;
    kind = what;
    error_number = error;
    count = 0;
    steps[0] = 0;
    armed = 1;
}

static long clock_shift;

void faulty_clock(long seconds) { clock_shift = seconds; }

const char *faulty_steps(void) { return steps; }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int clock_gettime(clockid_t id, struct timespec *now) {
    static __typeof__(&clock_gettime) real;
    if (!real) real = REAL(clock_gettime);
    int failed = real(id, now);
    if (!failed && id == CLOCK_REALTIME) now->tv_sec += clock_shift;
    return failed;
}

static int is_below(int folder, const char *path) {
    char whole[2 * PATH_MAX], base[PATH_MAX] = "";
    if (!armed) return 0;
    if (path == NULL || path[0] != '/') {
        char link[64];
        ssize_t size;
        if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        size = readlink(link, base, sizeof base - 1);
        if (size < 0) return 0;
        base[size] = 0;
    }
    if (path == NULL) snprintf(whole, sizeof whole, "%s", base);
    else if (path[0] == '/') snprintf(whole, sizeof whole, "%s", path);
    else snprintf(whole, sizeof whole, "%s/%s", base, path);
    return strncmp(whole, below, strlen(below)) == 0;
}

/* Count a step; 1 if it is to fail, with errno set, 2 if it is to do half, 3 if it is to be the last. */
static int strike(const char *name, int is_write) {
    long n = atomic_fetch_add(&count, 1);
    size_t used = strlen(steps);
    if (used + 32 < sizeof steps) snprintf(steps + used, sizeof steps - used, "%s ", name);
    if (n < target || (n > target && kind != FAIL_FROM_HERE)) return 0;
    switch (kind) {
    case FAIL:
    case FAIL_FROM_HERE:
        if (kind == FAIL_FROM_HERE && strcmp(name, "unlink") == 0) return 0;
        errno = error_number;
        return 1;
    case SHORT: return is_write ? 2 : 0;
    case KILL_BEFORE: kill(getpid(), SIGKILL); pause(); return 0;
    case KILL_AFTER: return 3;
    case KILL_INSIDE: if (is_write) return 4; return 0;
    case INTERRUPT: kill(getpid(), SIGINT); return 0;
    default: return 0;
    }
}

static void finish(int struck) {
    if (struck >= 3) { kill(getpid(), SIGKILL); pause(); }
}

#define STEP(name, is_write, watched, call, type) do { \
    if (!(watched)) return call; \
    int struck = strike(name, is_write); \
    if (struck == 1) return -1; \
    type done = call; \
    finish(struck); \
    return done; } while (0)

#define WRITES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))
#define OPEN(name, folder, at, ...) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } \
    STEP("open", 0, WRITES(flags) && is_below(folder, path), REAL(name)(__VA_ARGS__, flags, mode), int);

int open(const char *path, int flags, ...) { OPEN(open, AT_FDCWD, 0, path) }
int open64(const char *path, int flags, ...) { OPEN(open64, AT_FDCWD, 0, path) }
int openat(int folder, const char *path, int flags, ...) { OPEN(openat, folder, 1, folder, path) }
int openat64(int folder, const char *path, int flags, ...) { OPEN(openat64, folder, 1, folder, path) }

#define WRITE(real, size, ...) \
    if (!is_below(fd, NULL)) return REAL(real)(fd, data, size, ##__VA_ARGS__); \
    int struck = strike("write", 1); \
    if (struck == 1) return -1; \
    ssize_t done = REAL(real)(fd, data, (struck == 2 || struck == 4) && size > 1 ? size / 2 : size, ##__VA_ARGS__); \
    finish(struck); \
    return done;

ssize_t write(int fd, const void *data, size_t size) { WRITE(write, size) }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { WRITE(pwrite, size, at) }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { WRITE(pwrite64, size, at) }
ssize_t writev(int fd, const struct iovec *data, int size) { WRITE(writev, size) }

int rename(const char *from, const char *to) {
    STEP("rename", 0, is_below(AT_FDCWD, to), REAL(rename)(from, to), int);
}
int renameat(int a, const char *from, int b, const char *to) {
    STEP("rename", 0, is_below(b, to), REAL(renameat)(a, from, b, to), int);
}
int link(const char *from, const char *to) { STEP("link", 0, is_below(AT_FDCWD, to), REAL(link)(from, to), int); }
int linkat(int a, const char *from, int b, const char *to, int flags) {
    STEP("link", 0, is_below(b, to), REAL(linkat)(a, from, b, to, flags), int);
}
int fsync(int fd) { STEP("fsync", 0, is_below(fd, NULL), REAL(fsync)(fd), int); }
int fdatasync(int fd) { STEP("fsync", 0, is_below(fd, NULL), REAL(fdatasync)(fd), int); }
int ftruncate(int fd, off_t size) { STEP("truncate", 0, is_below(fd, NULL), REAL(ftruncate)(fd, size), int); }
int ftruncate64(int fd, off64_t size) { STEP("truncate", 0, is_below(fd, NULL), REAL(ftruncate64)(fd, size), int); }
int mkdir(const char *path, mode_t mode) { STEP("mkdir", 0, is_below(AT_FDCWD, path), REAL(mkdir)(path, mode), int); }
int mkdirat(int folder, const char *path, mode_t mode) {
    STEP("mkdir", 0, is_below(folder, path), REAL(mkdirat)(folder, path, mode), int);
}
int unlink(const char *path) { STEP("unlink", 0, is_below(AT_FDCWD, path), REAL(unlink)(path), int); }
int rmdir(const char *path) { STEP("unlink", 0, is_below(AT_FDCWD, path), REAL(rmdir)(path), int); }
int unlinkat(int folder, const char *path, int flags) {
    STEP("unlink", 0, is_below(folder, path), REAL(unlinkat)(folder, path, flags), int);
}

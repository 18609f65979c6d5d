/* Faults below Python, for the tests: loaded before the C library (LD_PRELOAD), this file answers the calls by which a
 * process changes or reads files, counts those on paths in one folder, and lets one of them fail.
 *
 * What it has to do stands in a file that is mapped into memory, whose path is in THRESHER_SHIM: whoever maps the same
 * file arms it, also for a process that was forked or started later, and reads there what has happened, also when the
 * process was killed. The layout of that file is `struct orders`; tests/runs/faults/shim.py says it again.
 */
#undef _FILE_OFFSET_BITS /* some compilers set these, and then headers define the calls themselves */
#undef _FORTIFY_SOURCE
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LOG_LENGTH = 16384, NAME = 16, TAIL = 111, LONGEST = 4096 };

enum kind {
    OPEN_TO_READ = 1, OPEN_TO_WRITE = 2, READ = 4, WRITE = 8, SYNC = 16, RENAME = 32, UNLINK = 64, LINK = 128,
    FOLDER = 256, TRUNCATE = 512, LIST = 1024, LOCK = 2048, CREATE = 4096
};

enum action { COUNT, FAIL, FAIL_ON, SHORT, KILL_BEFORE, KILL_AFTER, KILL_WITHIN, SIGNAL, STOP, FILL };

struct call {
    uint16_t kind;
    char name[NAME - 2];
    char path[TAIL + 1];
};

struct orders {
    _Atomic uint32_t armed;
    uint32_t kinds, number, action;
    int32_t error;
    _Atomic uint32_t count, fired;
    char folder[1024];
    struct call log[LOG_LENGTH];
};

static struct orders *orders;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("THRESHER_SHIM");
    if (path == NULL) return;
    int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return;
    void *memory = mmap(NULL, sizeof(struct orders), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    syscall(SYS_close, descriptor);
    if (memory != MAP_FAILED) orders = memory;
}

/* Whether a call is to fail, and how; COUNT if it is to work. */
static enum action order(int kind, const char *name, const char *path) {
    if (orders == NULL || !atomic_load(&orders->armed) || !(orders->kinds & kind)) return COUNT;
    size_t length = strnlen(orders->folder, sizeof orders->folder);
    if (strncmp(path, orders->folder, length) != 0 || (path[length] != '/' && path[length] != '\0')) return COUNT;
    uint32_t number = atomic_fetch_add(&orders->count, 1) + 1;
    if (number <= LOG_LENGTH) {
        struct call *call = &orders->log[number - 1];
        size_t size = strlen(path + length);
        call->kind = (uint16_t)kind;
        strncpy(call->name, name, sizeof call->name - 1);
        strncpy(call->path, path + length + (size > TAIL ? size - TAIL : 0), TAIL);
    }
    enum action action = orders->action;
    if (action == STOP) {
        kill(getpid(), SIGSTOP);
        return COUNT;
    }
    int goes_on = action == FAIL_ON || action == FILL;
    if (action == COUNT || (goes_on ? number < orders->number : number != orders->number)) return COUNT;
    atomic_fetch_add(&orders->fired, 1);
    if (action == KILL_BEFORE) kill(getpid(), SIGKILL);
    if (action == SIGNAL) {
        kill(getpid(), orders->error);
        return COUNT;
    }
    if (action == FILL) return number == orders->number && kind == WRITE ? SHORT : FAIL;
    return action;
}

static enum action order_at(int kind, const char *name, int folder, const char *path) {
    char whole[LONGEST], link[64];
    if (orders == NULL || !atomic_load(&orders->armed) || path == NULL) return COUNT;
    if (path[0] == '/') return order(kind, name, path);
    ssize_t size;
    if (folder == AT_FDCWD) {
        if (getcwd(whole, sizeof whole - 1) == NULL) return COUNT;
        size = (ssize_t)strlen(whole);
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        size = readlink(link, whole, sizeof whole - 1);
        if (size < 0) return COUNT;
    }
    snprintf(whole + size, sizeof whole - (size_t)size, path[0] ? "/%s" : "%s", path);
    return order(kind, name, whole);
}

static enum action order_of(int kind, const char *name, int descriptor) {
    if (orders == NULL || !atomic_load(&orders->armed) || !(orders->kinds & kind)) return COUNT;
    int before = errno;
    char whole[LONGEST], link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, whole, sizeof whole - 1);
    errno = before;
    if (size < 0) return COUNT;
    whole[size] = '\0';
    return order(kind, name, whole);
}

static int opened_for(int flags) {
    if (flags & O_CREAT) return CREATE;
    return (flags & O_ACCMODE) == O_RDONLY ? OPEN_TO_READ : OPEN_TO_WRITE;
}

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })
#define FAILS(ordered) ((ordered) == FAIL || (ordered) == FAIL_ON)
#define CALL(wanted, failure, type, call)                                                                              \
    do {                                                                                                               \
        enum action ordered = (wanted);                                                                                \
        if (FAILS(ordered)) { errno = orders->error; return failure; }                                                 \
        type result = call;                                                                                            \
        if (ordered == KILL_AFTER || ordered == KILL_WITHIN) kill(getpid(), SIGKILL);                                  \
        return result;                                                                                                 \
    } while (0)
#define HALF(ordered, size) (((ordered) == SHORT || (ordered) == KILL_WITHIN) && (size) > 1 ? (size) / 2 : (size))
#define WRITES(name, descriptor, size, call)                                                                           \
    do {                                                                                                               \
        enum action ordered = order_of(WRITE, name, descriptor);                                                       \
        if (FAILS(ordered)) { errno = orders->error; return -1; }                                                      \
        size = HALF(ordered, size);                                                                                    \
        ssize_t result = call;                                                                                         \
        if (ordered == KILL_AFTER || ordered == KILL_WITHIN) kill(getpid(), SIGKILL);                                  \
        return result;                                                                                                 \
    } while (0)

static mode_t mode_of(int flags, va_list words) {
    return (flags & (O_CREAT | O_TMPFILE)) ? va_arg(words, mode_t) : 0;
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list words;                                                                                                 \
        va_start(words, flags);                                                                                        \
        mode_t mode = mode_of(flags, words);                                                                           \
        va_end(words);                                                                                                 \
        CALL(order_at(opened_for(flags), #name, AT_FDCWD, path), -1, int, REAL(name)(path, flags, mode));              \
    }
#define OPENAT(name)                                                                                                   \
    int name(int folder, const char *path, int flags, ...) {                                                           \
        va_list words;                                                                                                 \
        va_start(words, flags);                                                                                        \
        mode_t mode = mode_of(flags, words);                                                                           \
        va_end(words);                                                                                                 \
        CALL(order_at(opened_for(flags), #name, folder, path), -1, int, REAL(name)(folder, path, flags, mode));        \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* What the compiler makes of calls of open without a mode where _FORTIFY_SOURCE is set, and old names. */
int __open_2(const char *path, int flags) { return open(path, flags); }
int __open64_2(const char *path, int flags) { return open64(path, flags); }
int __openat_2(int folder, const char *path, int flags) { return openat(folder, path, flags); }
int __openat64_2(int folder, const char *path, int flags) { return openat64(folder, path, flags); }
int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

#define STREAM(name)                                                                                                   \
    FILE *name(const char *path, const char *mode) {                                                                   \
        CALL(order_at(mode[0] == 'r' ? OPEN_TO_READ : CREATE, #name, AT_FDCWD, path), NULL, FILE *,                    \
             REAL(name)(path, mode));                                                                                  \
    }
STREAM(fopen)
STREAM(fopen64)

ssize_t write(int descriptor, const void *from, size_t size) {
    WRITES("write", descriptor, size, REAL(write)(descriptor, from, size));
}
#define PWRITE(name, offset_type)                                                                                      \
    ssize_t name(int descriptor, const void *from, size_t size, offset_type offset) {                                  \
        WRITES(#name, descriptor, size, REAL(name)(descriptor, from, size, offset));                                   \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

/* A short one writes the first half of its buffers, or of the only one. */
static ssize_t write_half(int descriptor, const struct iovec *buffers, int count, off64_t offset) {
    struct iovec half = buffers[0];
    half.iov_len = half.iov_len > 1 ? half.iov_len / 2 : half.iov_len;
    if (offset >= 0) return count > 1 ? REAL(pwritev64)(descriptor, buffers, count / 2, offset)
                                      : REAL(pwritev64)(descriptor, &half, 1, offset);
    return count > 1 ? REAL(writev)(descriptor, buffers, count / 2) : REAL(writev)(descriptor, &half, 1);
}
#define WRITES_MANY(name, offset, call)                                                                                \
    do {                                                                                                               \
        enum action ordered = order_of(WRITE, name, descriptor);                                                       \
        int short_one = ordered == SHORT || ordered == KILL_WITHIN;                                                    \
        if (FAILS(ordered)) { errno = orders->error; return -1; }                                                      \
        ssize_t result = short_one ? write_half(descriptor, buffers, count, offset) : call;                            \
        if (ordered == KILL_AFTER || ordered == KILL_WITHIN) kill(getpid(), SIGKILL);                                  \
        return result;                                                                                                 \
    } while (0)
ssize_t writev(int descriptor, const struct iovec *buffers, int count) {
    WRITES_MANY("writev", -1, REAL(writev)(descriptor, buffers, count));
}
ssize_t pwritev(int descriptor, const struct iovec *buffers, int count, off_t offset) {
    WRITES_MANY("pwritev", offset, REAL(pwritev)(descriptor, buffers, count, offset));
}
ssize_t pwritev64(int descriptor, const struct iovec *buffers, int count, off64_t offset) {
    WRITES_MANY("pwritev64", offset, REAL(pwritev64)(descriptor, buffers, count, offset));
}
#define COPY_FILE(name, offset_type)                                                                                   \
    ssize_t name(int to, int from, offset_type *offset, size_t size) {                                                 \
        WRITES(#name, to, size, REAL(name)(to, from, offset, size));                                                   \
    }
COPY_FILE(sendfile, off_t)
COPY_FILE(sendfile64, off64_t)
ssize_t copy_file_range(int from, off64_t *start, int to, off64_t *offset, size_t size, unsigned flags) {
    WRITES("copy_file_range", to, size, REAL(copy_file_range)(from, start, to, offset, size, flags));
}

#define FD_CALL(kind, name, type)                                                                                      \
    int name(int descriptor, type value) {                                                                             \
        CALL(order_of(kind, #name, descriptor), -1, int, REAL(name)(descriptor, value));                               \
    }
FD_CALL(TRUNCATE, ftruncate, off_t)
FD_CALL(TRUNCATE, ftruncate64, off64_t)
FD_CALL(LOCK, flock, int)
#define RESERVE(name, offset_type)                                                                                     \
    int name(int descriptor, int mode, offset_type offset, offset_type size) {                                         \
        CALL(order_of(WRITE, #name, descriptor), -1, int, REAL(name)(descriptor, mode, offset, size));                 \
    }
RESERVE(fallocate, off_t)
RESERVE(fallocate64, off64_t)
#define RESERVE_POSIX(name, offset_type)                                                                               \
    int name(int descriptor, offset_type offset, offset_type size) {                                                   \
        CALL(order_of(WRITE, #name, descriptor), orders->error, int, REAL(name)(descriptor, offset, size));            \
    }
RESERVE_POSIX(posix_fallocate, off_t)
RESERVE_POSIX(posix_fallocate64, off64_t)

int fsync(int descriptor) { CALL(order_of(SYNC, "fsync", descriptor), -1, int, REAL(fsync)(descriptor)); }
int fdatasync(int descriptor) { CALL(order_of(SYNC, "fdatasync", descriptor), -1, int, REAL(fdatasync)(descriptor)); }

ssize_t read(int descriptor, void *to, size_t size) {
    CALL(order_of(READ, "read", descriptor), -1, ssize_t, REAL(read)(descriptor, to, size));
}
#define PREAD(name, offset_type)                                                                                       \
    ssize_t name(int descriptor, void *to, size_t size, offset_type offset) {                                          \
        CALL(order_of(READ, #name, descriptor), -1, ssize_t, REAL(name)(descriptor, to, size, offset));                \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)
ssize_t readv(int descriptor, const struct iovec *buffers, int count) {
    CALL(order_of(READ, "readv", descriptor), -1, ssize_t, REAL(readv)(descriptor, buffers, count));
}
ssize_t preadv(int descriptor, const struct iovec *buffers, int count, off_t offset) {
    CALL(order_of(READ, "preadv", descriptor), -1, ssize_t, REAL(preadv)(descriptor, buffers, count, offset));
}
ssize_t preadv64(int descriptor, const struct iovec *buffers, int count, off64_t offset) {
    CALL(order_of(READ, "preadv64", descriptor), -1, ssize_t, REAL(preadv64)(descriptor, buffers, count, offset));
}
/* What the compiler makes of reads into buffers of a known size where _FORTIFY_SOURCE is set. */
ssize_t __read_chk(int descriptor, void *to, size_t size, size_t room) {
    (void)room;
    return read(descriptor, to, size);
}
ssize_t __pread_chk(int descriptor, void *to, size_t size, off_t offset, size_t room) {
    (void)room;
    return pread(descriptor, to, size, offset);
}
ssize_t __pread64_chk(int descriptor, void *to, size_t size, off64_t offset, size_t room) {
    (void)room;
    return pread64(descriptor, to, size, offset);
}

int rename(const char *from, const char *to) {
    CALL(order_at(RENAME, "rename", AT_FDCWD, to), -1, int, REAL(rename)(from, to));
}
int renameat(int old, const char *from, int new, const char *to) {
    CALL(order_at(RENAME, "renameat", new, to), -1, int, REAL(renameat)(old, from, new, to));
}
int renameat2(int old, const char *from, int new, const char *to, unsigned flags) {
    CALL(order_at(RENAME, "renameat2", new, to), -1, int, REAL(renameat2)(old, from, new, to, flags));
}
int link(const char *from, const char *to) {
    CALL(order_at(LINK, "link", AT_FDCWD, to), -1, int, REAL(link)(from, to));
}
int linkat(int old, const char *from, int new, const char *to, int flags) {
    CALL(order_at(LINK, "linkat", new, to), -1, int, REAL(linkat)(old, from, new, to, flags));
}
int symlink(const char *text, const char *path) {
    CALL(order_at(LINK, "symlink", AT_FDCWD, path), -1, int, REAL(symlink)(text, path));
}
int symlinkat(const char *text, int folder, const char *path) {
    CALL(order_at(LINK, "symlinkat", folder, path), -1, int, REAL(symlinkat)(text, folder, path));
}

#define PATH_CALL(kind, name) \
    int name(const char *path) { CALL(order_at(kind, #name, AT_FDCWD, path), -1, int, REAL(name)(path)); }
PATH_CALL(UNLINK, unlink)
PATH_CALL(UNLINK, remove)
PATH_CALL(UNLINK, rmdir)
int unlinkat(int folder, const char *path, int flags) {
    CALL(order_at(UNLINK, "unlinkat", folder, path), -1, int, REAL(unlinkat)(folder, path, flags));
}
int mkdir(const char *path, mode_t mode) {
    CALL(order_at(FOLDER, "mkdir", AT_FDCWD, path), -1, int, REAL(mkdir)(path, mode));
}
int mkdirat(int folder, const char *path, mode_t mode) {
    CALL(order_at(FOLDER, "mkdirat", folder, path), -1, int, REAL(mkdirat)(folder, path, mode));
}
#define TRUNCATE_PATH(name, offset_type)                                                                               \
    int name(const char *path, offset_type size) {                                                                     \
        CALL(order_at(TRUNCATE, #name, AT_FDCWD, path), -1, int, REAL(name)(path, size));                              \
    }
TRUNCATE_PATH(truncate, off_t)
TRUNCATE_PATH(truncate64, off64_t)
DIR *opendir(const char *path) {
    CALL(order_at(LIST, "opendir", AT_FDCWD, path), NULL, DIR *, REAL(opendir)(path));
}
DIR *fdopendir(int descriptor) {
    CALL(order_of(LIST, "fdopendir", descriptor), NULL, DIR *, REAL(fdopendir)(descriptor));
}

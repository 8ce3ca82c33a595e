/* Makes the tool that builds a component give the same bytes each time: a library to be preloaded.
 *
 * componentize-qjs starts the QuickJS engine while it builds, and keeps the memory of the started engine. The engine's random seed and
 * clocks are in there, so that two builds differ. To this tool, and to nothing else in the process, time stands still here, and every
 * random byte is the same. Linux. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int is_the_tool(void *caller) {
    Dl_info from;
    return dladdr(caller, &from) && from.dli_fname && strstr(from.dli_fname, "componentize-qjs");
}

ssize_t getrandom(void *bytes, size_t count, unsigned flags) {
    if (!is_the_tool(__builtin_return_address(0))) return syscall(SYS_getrandom, bytes, count, flags);
    memset(bytes, 42, count);
    return (ssize_t)count;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!is_the_tool(__builtin_return_address(0))) return (int)syscall(SYS_clock_gettime, clock, now);
    now->tv_sec = 0;
    now->tv_nsec = 0;
    return 0;
}

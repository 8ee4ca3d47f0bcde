/* The judge: records which functions of one library are executed.
 *
 * In a copy of the library the first byte of every function is a trap. The first call of each function comes here; the
 * function is noted, its byte restored, and the call goes on as if nothing had been. From then on it costs nothing.
 *
 * Preloaded with three variables: OPSIEVE_JUDGE, a folder with the files `addresses` (sorted 64-bit addresses of the
 * traps, as in the library), `bytes` (what belongs there) and `hits` (a byte per trap, set here: shared by all
 * processes); OPSIEVE_JUDGE_LIBRARY, the library's file name. Linked with -z initfirst, so that the handler stands
 * before any other constructor; hence the environment is read from the arguments of the constructor. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

enum { CANNOT = 97 }; /* known to judge.py */

static const uint64_t *addresses;
static const uint8_t *originals;
static uint8_t *hits;
static size_t count;
static const char *library;
static uintptr_t base; /* what the loader added to the library's addresses; may be 0 */
static atomic_bool found; /* whether `base` is known */

static void give_up(const char *reason) {
    static const char prefix[] = "opsieve judge: ";
    struct { const char *text; size_t size; } parts[] = {{prefix, sizeof prefix - 1}, {reason, strlen(reason)}, {"\n", 1}};
    for (size_t i = 0; i < 3; i++)
        if (write(2, parts[i].text, parts[i].size) < 0)
            break;
    _exit(CANNOT);
}

static int is_library(const char *path) {
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, library) == 0;
}

/* Find the library, make its code writable, and remember where it is. Two threads may do so at once: both do the same. */
static int find_base(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (!info->dlpi_name || !is_library(info->dlpi_name))
        return 0;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        uintptr_t start = info->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
        start &= ~(page - 1);
        if (mprotect((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC))
            give_up("the system does not let code be changed in memory");
    }
    base = info->dlpi_addr;
    atomic_store(&found, true);
    return 1;
}

/* The number of the trap at an address, or `count`. */
static size_t find_trap(uint64_t address) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (addresses[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && addresses[low] == address ? low : count;
}

static void on_trap(int number, siginfo_t *info, void *context) {
    (void)info;
    greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    uintptr_t start = (uintptr_t)*rip - 1;
    if (!atomic_load(&found))
        dl_iterate_phdr(find_base, NULL);
    size_t trap = atomic_load(&found) ? find_trap(start - base) : count;
    if (trap == count) { /* not one of ours: what would have happened without us */
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    /* Another thread may have restored the byte meanwhile: then this changes nothing. */
    *(volatile uint8_t *)start = originals[trap];
    hits[trap] = 1;
    *rip = (greg_t)start;
}

static const char *value_of(char **environment, const char *name) {
    size_t length = strlen(name);
    for (; *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static void *map(const char *folder, const char *name, int writable, size_t *size) {
    char path[4096];
    struct stat status;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        give_up("the path of the folder is too long");
    int file = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (file < 0 || fstat(file, &status))
        give_up("cannot open its files");
    *size = (size_t)status.st_size;
    void *memory = mmap(NULL, *size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        give_up("cannot map its files");
    close(file);
    return memory;
}

__attribute__((constructor)) static void begin(int argc, char **argv, char **environment) {
    (void)argc, (void)argv;
    const char *folder = value_of(environment, "OPSIEVE_JUDGE");
    library = value_of(environment, "OPSIEVE_JUDGE_LIBRARY");
    if (!folder || !library)
        return;
    size_t address_bytes, original_bytes, hit_bytes;
    addresses = map(folder, "addresses", 0, &address_bytes);
    originals = map(folder, "bytes", 0, &original_bytes);
    hits = map(folder, "hits", 1, &hit_bytes);
    count = original_bytes;
    if (address_bytes != 8 * count || hit_bytes != count)
        give_up("its files do not fit together");
    struct sigaction action = {0};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    if (sigaction(SIGTRAP, &action, NULL))
        give_up("cannot handle traps");
}

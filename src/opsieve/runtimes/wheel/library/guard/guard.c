/* The guard: tells by name what removed code was reached, before the process ends with status 86.
 *
 * This is compiled once (scripts/build_guard.py) to position-independent machine code without any relocation, and put
 * as it is into each slim library. The loader runs guard_init in place of the library's DT_INIT, so before all of its
 * constructors. No library function is used: the handlers run in a process that is broken, on any thread, and guard_init
 * runs before the library's own imports are in order. */

#include <stdint.h>

#include "inflate.h"

#define VISIBLE __attribute__((used, visibility("hidden")))

/* Filled in when a library is made slim. Addresses are distances from the header itself, so that nothing needs
 * relocating; 0 means that there is none. Python knows this layout as guard_table.HEADER. */
struct header {
    uint64_t magic;
    int64_t init, fini;         /* set by the linker: the entry points below */
    int64_t old_init, old_fini; /* what the library had before */
    int64_t image;              /* the address 0 of the library */
    int64_t phdrs;              /* program headers, to tell which pages are there */
    uint64_t phdr_count;
    int64_t index;              /* blocks of the name table, by address */
    uint64_t index_count;
    int64_t symbols, strings;   /* what the library exports, to name the callers */
    uint64_t symbol_count;
    int64_t library, advice;    /* strings: file name; what to do when no operator is known */
    int64_t state;              /* struct state, writable */
};

struct block { /* of the name table: deflated */
    uint32_t first;  /* address of its first function */
    uint32_t size;   /* bytes deflated */
    uint64_t offset; /* from the index */
};

enum { TEXT = 1 << 16, SIGNALS = 4 };

/* A block, inflated, holds for each function four things: the distance of its start from the end of the function before
 * (of the first one: from the start in the index), its size, both in LEB128; its name; the operator, or nothing. */

struct action { /* struct kernel_sigaction of Linux, not the one of libc */
    void (*handler)(int, void *, void *);
    uint64_t flags;
    void (*restorer)(void);
    uint64_t mask;
};

struct state {
    struct action old[SIGNALS];
    int reporting;
    struct inflater inflater;
    uint8_t text[TEXT];
};

_Static_assert(sizeof(struct state) <= 72 * 1024, "guard_table.STATE_SIZE is too small");

struct phdr {
    uint32_t type, flags;
    uint64_t offset, vaddr, paddr, filesz, memsz, align;
};

struct sym {
    uint32_t name;
    uint8_t info, other;
    uint16_t shndx;
    uint64_t value, size;
};

__asm__(
    ".section .header,\"ax\"\n"
    ".globl guard_header\n.hidden guard_header\n"
    "guard_header:\n"
    ".quad 0x3176656973706f00\n" /* "\0opsiev1" */
    ".quad guard_init - guard_header\n"
    ".quad guard_fini - guard_header\n"
    ".zero 104\n"
    ".ascii \"source " SOURCE_DIGEST "\"\n"
    ".text\n"
    /* Unwinders know the frame of a signal handler by exactly these two instructions. */
    ".globl guard_restore\n.hidden guard_restore\n"
    "guard_restore: mov $15, %rax\n"
    "syscall\n");

extern const volatile struct header guard_header __attribute__((visibility("hidden")));
extern void guard_restore(void) __attribute__((visibility("hidden")));

enum { SYS_write = 1, SYS_sigaction = 13, SYS_sigprocmask = 14, SYS_getpid = 39, SYS_gettid = 186 };
enum { SYS_exit_group = 231, SYS_tgkill = 234 };
enum { SIGILL_ = 4, SIGTRAP_ = 5, SIGBUS_ = 7, SIGSEGV_ = 11 };
enum { PT_LOAD_ = 1, STATUS = 86 };
#define SA_SIGINFO_ 4ul
#define SA_RESTORER_ 0x04000000ul
#define SA_ONSTACK_ 0x08000000ul
#define SA_NODEFER_ 0x40000000ul
#define SA_RESETHAND_ 0x80000000ul

static long call(long number, long a, long b, long c, long d) {
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}

static const void *at(int64_t distance) {
    return distance ? (const char *)&guard_header + distance : 0;
}

static struct state *state(void) { return (struct state *)at(guard_header.state); }

static int slot(int signal) {
    return signal == SIGSEGV_ ? 0 : signal == SIGTRAP_ ? 1 : signal == SIGILL_ ? 2 : 3;
}

static const int signals[SIGNALS] = {SIGSEGV_, SIGTRAP_, SIGILL_, SIGBUS_};

/* Output is collected and written at once, so that lines of several threads do not mix. */
struct line {
    int used;
    char text[900];
};

static void add(struct line *out, const char *text) {
    while (text && *text && out->used < (int)sizeof out->text) out->text[out->used++] = *text++;
}

static void add_address(struct line *out, uint64_t value) {
    add(out, "+0x");
    int shift = 60;
    while (shift > 0 && !(value >> shift)) shift -= 4;
    for (; shift >= 0; shift -= 4) {
        char digit[2] = {"0123456789abcdef"[(value >> shift) & 15], 0};
        add(out, digit);
    }
}

static void flush(struct line *out) {
    int done = 0;
    while (done < out->used) {
        long n = call(SYS_write, 2, (long)(out->text + done), out->used - done, 0);
        if (n <= 0) break;
        done += n;
    }
    out->used = 0;
}

/* ---- what lies at an address ---- */

static uint64_t image(void) { return (uint64_t)at(guard_header.image); }

/* Whether an address belongs to the library, and if so whether its page is in the file. */
static int in_image(uint64_t address, int *present) {
    const struct phdr *phdrs = at(guard_header.phdrs);
    uint64_t low = ~0ul, high = 0;
    *present = 0;
    for (uint64_t i = 0; i < guard_header.phdr_count; i++) {
        if (phdrs[i].type != PT_LOAD_) continue;
        uint64_t start = phdrs[i].vaddr & ~4095ul, end = (phdrs[i].vaddr + phdrs[i].memsz + 4095) & ~4095ul;
        if (start < low) low = start;
        if (end > high) high = end;
        if (address >= start && address < end) *present = 1;
    }
    return address >= low && address < high;
}

struct found {
    uint64_t start;
    const char *name, *op;
};

/* Behind the string that starts at `text`. */
static const uint8_t *skip(const uint8_t *text, const uint8_t *end) {
    while (text < end && *text) text++;
    return text < end ? text + 1 : end;
}

static uint64_t number(const uint8_t **next, const uint8_t *end) {
    uint64_t value = 0;
    for (int shift = 0; *next < end && shift < 63; shift += 7) {
        uint8_t byte = *(*next)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return value;
}

/* The removed function that holds an address; 0 if there is none. */
static int find_removed(uint64_t address, struct found *result) {
    const struct block *blocks = at(guard_header.index);
    uint64_t low = 0, high = guard_header.index_count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (blocks[middle].first <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low) return 0;
    const struct block *block = &blocks[low - 1];
    struct state *s = state();
    const uint8_t *data = (const uint8_t *)blocks + block->offset;
    long size = inflate(&s->inflater, data, block->size, s->text, TEXT);
    const uint8_t *next = s->text, *end = s->text + (size > 0 ? size : 0);
    uint64_t start = block->first;
    while (next < end) {
        start += number(&next, end);
        uint64_t length = number(&next, end);
        result->start = start;
        result->name = (const char *)next;
        next = skip(next, end);
        result->op = (const char *)next;
        next = skip(next, end);
        if (address < start) break;
        /* Every string ends within the block, or it would not have been read to its end. */
        if (address < start + length) return next[-1] == 0;
        start += length;
    }
    return 0;
}

/* The exported function that holds an address of kept code; local functions have no name at run time. */
static const char *find_exported(uint64_t address) {
    const struct sym *symbols = at(guard_header.symbols);
    for (uint64_t i = 0; i < guard_header.symbol_count; i++)
        if (symbols[i].shndx && symbols[i].value <= address && address < symbols[i].value + symbols[i].size)
            return (const char *)at(guard_header.strings) + symbols[i].name;
    return 0;
}

static void add_place(struct line *out, uint64_t address) {
    add_address(out, address - image());
    const char *name = find_exported(address - image());
    if (name) {
        add(out, " ");
        add(out, name);
    }
}

/* ---- reports ---- */

static void begin(struct line *out, const char *what) {
    out->used = 0;
    add(out, "\nopsieve: ");
    add(out, at(guard_header.library));
    add(out, ": ");
    add(out, what);
}

static void finish(struct line *out) {
    flush(out);
    for (;;) call(SYS_exit_group, STATUS, 0, 0, 0);
}

static void report_code(uint64_t address, const struct found *found, uint64_t caller) {
    struct line out;
    begin(&out, "the program reached code that is not in this slim build\n  function: ");
    add(&out, found ? found->name : "unknown");
    add(&out, " (");
    add_address(&out, address);
    add(&out, ")\n");
    if (found && *found->op) {
        add(&out, "  operator: ");
        add(&out, found->op);
        add(&out, "\n  remedy: build again with --op ");
        add(&out, found->op);
    } else {
        add(&out, "  remedy: ");
        add(&out, at(guard_header.advice));
    }
    add(&out, "\n");
    flush(&out);
    int present;
    if (caller && in_image(caller - image(), &present)) {
        add(&out, "  called from: ");
        add_place(&out, caller);
        add(&out, "\n");
    }
    finish(&out);
}

static void report_data(uint64_t address, uint64_t reader) {
    struct line out;
    int present;
    begin(&out, "the program read data that is not in this slim build (");
    add_address(&out, address);
    add(&out, ")\n  remedy: ");
    add(&out, at(guard_header.advice));
    add(&out, "\n");
    flush(&out);
    if (in_image(reader - image(), &present)) {
        add(&out, "  read by: ");
        add_place(&out, reader);
        add(&out, "\n");
    }
    finish(&out);
}

/* ---- the handler ---- */

enum { CONTEXT_STACK_POINTER = 16, CONTEXT_STACK_SIZE = 32, CONTEXT_RSP = 160, CONTEXT_RIP = 168 };

static uint64_t field(const void *base, int offset) { return *(const uint64_t *)((const char *)base + offset); }

/* Python's faulthandler and others print what they know from their own handler and then raise the signal once more,
 * still on the alternate stack. The instruction that faulted will fault again when they return, and then we see it. */
static int raised_by_a_handler(int signal, const void *info, const void *context) {
    int code = ((const int *)info)[2];
    uint64_t stack = field(context, CONTEXT_STACK_POINTER), size = field(context, CONTEXT_STACK_SIZE);
    uint64_t rsp = field(context, CONTEXT_RSP);
    return code <= 0 && signal != SIGTRAP_ && size && rsp >= stack && rsp < stack + size;
}

static void pass_on(int signal, void *info, void *context) {
    struct action *old = &state()->old[slot(signal)];
    if ((uint64_t)old->handler > 1) {
        /* Call it as the kernel would have: with its mask, which the kernel undoes when we return. */
        uint64_t self = 1ul << (signal - 1), mask = old->mask & ~self;
        void (*handler)(int, void *, void *) = old->handler;
        call(SYS_sigprocmask, 0 /* SIG_BLOCK */, (long)&mask, 0, 8);
        if (old->flags & SA_NODEFER_) call(SYS_sigprocmask, 1 /* SIG_UNBLOCK */, (long)&self, 0, 8);
        if (old->flags & SA_RESETHAND_) old->handler = 0;
        handler(signal, info, context);
        return;
    }
    int sent = ((const int *)info)[2] <= 0;
    if (raised_by_a_handler(signal, info, context) || (sent && (uint64_t)old->handler == 1 /* SIG_IGN */)) return;
    /* Nobody else wants it: put back what was there, so that the process ends the way it would have without us. A
     * fault happens again at once; a signal that was sent, or a trap, which does not repeat, is sent again. */
    call(SYS_sigaction, signal, (long)old, 0, 8);
    if (sent || signal == SIGTRAP_)
        call(SYS_tgkill, call(SYS_getpid, 0, 0, 0, 0), call(SYS_gettid, 0, 0, 0, 0), signal, 0);
}

static void handle(int signal, void *info, void *context) {
    int code = ((const int *)info)[2], present = 1;
    uint64_t rip = field(context, CONTEXT_RIP) - (signal == SIGTRAP_), place = rip - image();
    if (code > 0 && in_image(place, &present)) { /* the kernel found a fault, nobody sent the signal */
        struct state *s = state();
        while (__atomic_exchange_n(&s->reporting, 1, __ATOMIC_ACQUIRE)) {
        }
        struct found found;
        int known = find_removed(place, &found);
        uint64_t target = field(info, 16);
        if (known || !present) {
            /* At the first instruction the caller's address is still on top of the stack. */
            uint64_t caller = known && found.start == place ? field((void *)field(context, CONTEXT_RSP), 0) : 0;
            report_code(place, known ? &found : 0, caller);
        }
        if (signal == SIGSEGV_ && in_image(target - image(), &present) && !present)
            report_data(target - image(), rip);
        __atomic_store_n(&s->reporting, 0, __ATOMIC_RELEASE);
    }
    pass_on(signal, info, context);
}

/* ---- entry points ---- */

VISIBLE void guard_init(int count, char **arguments, char **environment) {
    /* A fault inside the handler must end the process, so all four signals are blocked while it runs. */
    struct action action;
    action.handler = handle; /* an initialiser would become a constant that holds addresses */
    action.flags = SA_SIGINFO_ | SA_ONSTACK_ | SA_RESTORER_;
    action.restorer = guard_restore;
    action.mask = 0;
    for (int i = 0; i < SIGNALS; i++) action.mask |= 1ul << (signals[i] - 1);
    for (int i = 0; i < SIGNALS; i++) call(SYS_sigaction, signals[i], (long)&action, (long)&state()->old[i], 8);
    void (*old)(int, char **, char **) = (void (*)(int, char **, char **))at(guard_header.old_init);
    if (old) old(count, arguments, environment);
}

VISIBLE void guard_fini(void) {
    void (*old)(void) = (void (*)(void))at(guard_header.old_fini);
    if (old) old();
    for (int i = 0; i < SIGNALS; i++) {
        struct action now;
        /* A handler that came after ours keeps ours as its predecessor; there is nothing we could do for it. */
        if (!call(SYS_sigaction, signals[i], 0, (long)&now, 8) && now.handler == handle)
            call(SYS_sigaction, signals[i], (long)&state()->old[i], 0, 8);
    }
}

// Calls that go through the procedure linkage table, and one that goes through it only with an indirect function.
#define LEAF(name, value) __attribute__((noinline)) int name(int x) { asm volatile(""); return x + value; }

extern "C" {
int outside(int);
LEAF(inside, 1)
LEAF(another, 2)

static __attribute__((noinline)) LEAF(plain, 3)
static __attribute__((noinline)) LEAF(tuned, 4)
static int (*choose_kernel())(int) { return __builtin_cpu_supports("avx2") ? tuned : plain; }
__attribute__((visibility("hidden"))) int kernel(int) __attribute__((ifunc("choose_kernel")));

int calls_inside(int x) { return inside(x) + 1; }
int calls_another(int x) { return another(x) + 1; }
int calls_outside(int x) { return outside(x) + 1; }
int calls_kernel(int x) { return kernel(x) + 1; }
int jumps_inside(int x) { return inside(x); }
}

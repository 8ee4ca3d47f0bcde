// One example of each way in which one piece of code can get hold of another. What `entry_*` can reach is known by
// construction; nothing reaches `never_*`.
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#define LEAF(name) __attribute__((noinline)) int name(int x) { asm volatile(""); return x + __LINE__; }
#define LOCAL static __attribute__((noinline, used))

extern "C" {

// Direct calls: to a local function, and through the PLT to an exported one.
LOCAL LEAF(local_leaf)
LEAF(exported_leaf)
int entry_direct(int x) { return local_leaf(x) + 1; }
int entry_plt(int x) { return exported_leaf(x) + 1; }

// A tail call is a jump.
int entry_tail(int x) { return local_leaf(x + 1); }

// A table of pointers, indexed at run time.
LOCAL LEAF(table_first)
LOCAL LEAF(table_second)
LOCAL LEAF(table_third)
static int (*const pointer_table[])(int) = {table_first, table_second, table_third};
int entry_table(int x) { return pointer_table[x % 3](x); }

// A table that can be changed, reached through a pointer to its middle.
LOCAL LEAF(late_first)
LOCAL LEAF(late_second)
int (*writable_table[])(int) = {late_first, late_second};
int (**table_cursor)(int) = &writable_table[1];
int entry_cursor(int x) { return (*table_cursor)(x); }

// The address of a function, taken by an instruction.
LOCAL LEAF(callback)
int (*volatile chosen_callback)(int);
int entry_address(int x) { chosen_callback = callback; return chosen_callback(x); }

// A switch that becomes a jump table.
LOCAL LEAF(case_one)
LOCAL LEAF(case_two)
LOCAL LEAF(case_three)
LOCAL LEAF(case_four)
LOCAL LEAF(case_five)
int entry_switch(int x) {
  switch (x & 7) {
    case 1: return case_one(x) * 3;
    case 2: return case_two(x) * 5;
    case 3: return case_three(x) * 7;
    case 4: return case_four(x) * 11;
    case 5: return case_five(x) * 13;
    default: return x;
  }
}

// Unlikely code goes to a part of its own.
LOCAL __attribute__((cold)) LEAF(seldom)
int entry_cold(int x) {
  if (__builtin_expect(x == 12345, 0)) { return seldom(x) * 3; }
  return x + 1;
}

// A pointer in thread-local storage.
LOCAL LEAF(thread_leaf)
thread_local int (*thread_pointer)(int) = thread_leaf;
int entry_thread(int x) { return thread_pointer(x); }

LOCAL LEAF(never_called)
LEAF(never_exported)
}

// Virtual functions: making the object is what reaches them.
struct Shape {
  virtual ~Shape() = default;
  virtual int area(int x) = 0;
};
struct Square : Shape {
  int area(int x) override;
};
struct Circle : Shape {
  int area(int x) override;
};
__attribute__((noinline)) int Square::area(int x) { return exported_leaf(x) * x; }
__attribute__((noinline)) int Circle::area(int x) { return 3 * x * x; }
extern "C" __attribute__((noinline)) int call_area(Shape* shape, int x) { return shape->area(x); }
extern "C" int entry_virtual(int x) {
  Square square;
  return call_area(&square, x);
}

// An exception: the handler calls something.
extern "C" {
LOCAL LEAF(handler_leaf)
}
extern "C" __attribute__((noinline)) void may_throw(int x) { if (x == 999) { throw std::runtime_error("x"); } }
extern "C" int entry_catch(int x) {
  try {
    may_throw(x);
  } catch (const std::runtime_error&) {
    return handler_leaf(x);
  }
  return x;
}

#include "shared.h"
#include "table.h"

static void schema() { ++sink; }

static const int table_of_conv[64] = {1, 2, 3};
static const int table_of_add[256] = {1, 2, 3};

__attribute__((noinline)) int guarded(int size) {
  try {
    return checked(std::vector<int>(size), 1);
  } catch (const std::out_of_range&) {
    return counter();
  }
}

__attribute__((noinline)) int dead_guarded(int size) {
  try {
    return checked(std::vector<long>(size), 2);
  } catch (...) {
    return counter();
  }
}

namespace at {
namespace _ops {
struct mm {
  static void call();
};
struct add_Tensor {
  static void call();
  static void redispatch();
};
struct relu {
  static void call();
};
__attribute__((noinline)) void mm::call() { NEEDS("opsieve_op_4test2mm"); ++sink; }
__attribute__((noinline)) void add_Tensor::call() { NEEDS("opsieve_op_4test3add6Tensor"); --sink; }
__attribute__((noinline)) void add_Tensor::redispatch() { NEEDS("opsieve_op_4test3add6Tensor"); ----sink; }
__attribute__((noinline)) void relu::call() { NEEDS("opsieve_op_4test4relu"); sink = 9; }
} // namespace _ops
} // namespace at

void kernel_conv() { sink += guarded(0) + table_of_conv[sink & 63]; at::_ops::mm::call(); at::_ops::add_Tensor::call(); }
void kernel_mm() { sink += 2; at::_ops::add_Tensor::redispatch(); }
void kernel_add() { sink += table_of_add[sink & 255]; }
void kernel_relu() { sink += dead_guarded(4); at::_ops::add_Tensor::call(); }
void interpreter_len() { sink += 5; }

ENTRY(1, "opsieve_op_4test4conv", RELOCATION("opsieve_kernel_CPU_4test4conv"), schema);
ENTRY(2, "opsieve_kernel_CPU_4test4conv", "", kernel_conv);
ENTRY(3, "opsieve_op_4test2mm", RELOCATION("opsieve_kernel_CPU_4test2mm"), schema);
ENTRY(4, "opsieve_kernel_CPU_4test2mm", "", kernel_mm);
ENTRY(5, "opsieve_op_4test3add6Tensor", RELOCATION("opsieve_kernel_CPU_4test3add6Tensor"), schema);
ENTRY(6, "opsieve_kernel_CPU_4test3add6Tensor", "", kernel_add);
ENTRY(7, "opsieve_op_4test4relu", RELOCATION("opsieve_kernel_CPU_4test4relu"), schema);
ENTRY(8, "opsieve_kernel_CPU_4test4relu", "", kernel_relu);
ENTRY(9, "opsieve_interpreter_4test3len", "", interpreter_len);
ENTRY(10, "opsieve_op_4test4zero", RELOCATION("opsieve_kernel_CPU_4test4zero"), schema);
static void kernel_zero() { sink = 0; }
ENTRY(11, "opsieve_kernel_CPU_4test4zero", "", kernel_zero);

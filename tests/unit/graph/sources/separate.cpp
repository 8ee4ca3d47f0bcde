// Blocks whose initialisers stay functions of their own.
#include "operators.h"
using torch::CppFunction;
using namespace at::native;

TORCH_LIBRARY(aten, m) {
  m.def("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  m.def("mul.Tensor(Tensor self, Tensor other) -> Tensor");
  m.def("only_declared(Tensor self) -> Tensor");
  m.def_with("linear(Tensor input, Tensor weight) -> Tensor", CppFunction::of<linear_kernel>());
}

TORCH_LIBRARY_FRAGMENT(custom, 3, m) {
  m.def_with("custom::helper(Tensor self) -> Tensor", CppFunction::of<other_kernel>());
  m.def_with("custom::entry(Tensor self) -> Tensor", CppFunction::of<custom_kernel>());
}

TORCH_LIBRARY_IMPL(aten, CPU, 4, m) {
  m.impl("add.Tensor", CppFunction::of<add_kernel>());
  m.impl("mul.Tensor", CppFunction::of<mul_kernel>());
  m.impl("relu_", CppFunction::of<relu_inplace_kernel>());
  m.impl("clone", CppFunction::of<clone_kernel>());
}

TORCH_LIBRARY_IMPL(aten, Autograd, 5, m) {
  m.impl("mul.Tensor", CppFunction::of<torch::autograd::VariableType::mul_with_node>());
}

// The same body twice: the compiler makes one of them a jump to the other.
TORCH_LIBRARY_IMPL(aten, MkldnnCPU, 6, m) { m.impl("relu", CppFunction::of<relu_kernel>()); }
TORCH_LIBRARY_IMPL(aten, SparseCPU, 7, m) { m.impl("relu", CppFunction::of<relu_kernel>()); }

TORCH_LIBRARY_IMPL(_, Conjugate, 8, m) { m.fallback(CppFunction::of<fallback_kernel>()); }

TORCH_LIBRARY_IMPL(aten, Conjugate, 9, m) {
  m.impl("clone", CppFunction::makeFallthrough());
  m.impl("add.Tensor", CppFunction::makeFallthrough());
}

// Functions that take their arguments from the stack: made by a call, or by a function that makes that call.
static NOINLINE CppFunction not_implemented() { return CppFunction::makeFromBoxedFunction<boxed_fallback>(); }
TORCH_LIBRARY_IMPL(aten, Autograd, 11, m) {
  m.impl("clone", CppFunction::makeFromBoxedFunction<boxed_kernel>());
  m.impl("relu", not_implemented());
}

TORCH_LIBRARY_IMPL(aten, MkldnnCPU, 12, m) { m.impl("mul.Tensor", CppFunction::of<mul_mkldnn_kernel>()); }

// A namespace with underscores, and template instances that were not inlined.
TORCH_LIBRARY_IMPL(_my_quantized, QuantizedCPU, 10, m) {
  m.impl<mul_quantized>("mul");
  m.impl<sparse_kernel>("to_sparse.sparse_dim");
}

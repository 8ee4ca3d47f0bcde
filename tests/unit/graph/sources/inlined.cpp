// Blocks whose initialisers are inlined into the function that constructs the file's static objects.
#define INLINED
#include "operators.h"
using torch::CppFunction;
using namespace at::native;

TORCH_LIBRARY_IMPL(aten, QuantizedCPU, 2, m) {
  m.impl("mul.Tensor", CppFunction::of<mul_quantized>());
}

TORCH_LIBRARY_IMPL(aten, SparseCPU, 3, m) {
  m.impl("to_sparse.sparse_dim", CppFunction::of<sparse_kernel>());
}

TORCH_LIBRARY_IMPL(aten, CompositeImplicitAutograd, 4, m) {
  m.impl("relu", CppFunction::of<relu_kernel>());
}

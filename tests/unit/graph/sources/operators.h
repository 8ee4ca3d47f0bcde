#pragma once
#include "torch.h"

namespace at::native {
int add_kernel(int), mul_kernel(int), mul_autograd(int), mul_quantized(int), linear_kernel(int), relu_kernel(int);
int relu_inplace_kernel(int), clone_kernel(int), fallback_kernel(int), sparse_kernel(int), custom_kernel(int);
int other_kernel(int), mul_mkldnn_kernel(int), lookup(int);
void boxed_kernel(c10::Stack*), boxed_fallback(c10::Stack*);
}  // namespace at::native
namespace torch::autograd::VariableType {
int mul_with_node(int);
}

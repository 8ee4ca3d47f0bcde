// Dispatch entries, kernels that call them, and everything else that reaches an operator.
#include "operators.h"

namespace at::_ops {
static NOINLINE int dispatch(c10::OperatorHandle handle, int x) { asm volatile(""); return handle.entry ? x : 0; }
OPERATOR(add_Tensor, "aten::add", "Tensor")
OPERATOR(mul_Tensor, "aten::mul", "Tensor")
OPERATOR(relu, "aten::relu", "")
OPERATOR(relu_, "aten::relu_", "")
OPERATOR(clone, "aten::clone", "")
OPERATOR(linear, "aten::linear", "")
OPERATOR(to_sparse_sparse_dim, "aten::to_sparse", "sparse_dim")
}  // namespace at::_ops

namespace at::native {
// add needs nothing; mul needs add; linear needs mul and add through a helper; relu_ needs relu.
NOINLINE int add_kernel(int x) { asm volatile(""); return x + 1; }
NOINLINE int mul_kernel(int x) { return at::_ops::add_Tensor::call(x) * 2; }
NOINLINE int mul_autograd(int x) { return at::_ops::mul_Tensor::redispatch(1, x) * 3; }
NOINLINE int mul_quantized(int x) { return at::_ops::relu::call(x) * 5; }
static NOINLINE int linear_helper(int x) { return at::_ops::mul_Tensor::call(x) - at::_ops::add_Tensor::call(x); }
NOINLINE int linear_kernel(int x) { return linear_helper(x) + 7; }
NOINLINE int relu_kernel(int x) { asm volatile(""); return x > 0 ? x : 0; }
NOINLINE int relu_inplace_kernel(int x) { return at::_ops::relu::call(x) + 9; }
NOINLINE int clone_kernel(int x) { asm volatile(""); return x + 11; }
NOINLINE int fallback_kernel(int x) { return at::_ops::clone::call(x) + 13; }
NOINLINE int sparse_kernel(int x) { return at::_ops::clone::call(x) + 15; }
NOINLINE int custom_kernel(int x) { return lookup(x) + 17; }
NOINLINE int other_kernel(int x) { asm volatile(""); return x + 19; }

NOINLINE int mul_mkldnn_kernel(int x) { asm volatile(""); return x * 23; }
NOINLINE void boxed_kernel(c10::Stack* stack) { asm volatile("" : : "r"(stack), "r"(at::_ops::clone::redispatch(1, 3))); }
NOINLINE void boxed_fallback(c10::Stack* stack) { asm volatile("" : : "r"(stack), "r"(at::_ops::relu::redispatch(1, 3))); }

// An operator found by name, as code outside torchgen's does it.
NOINLINE int lookup(int x) {
  static auto handle = c10::Dispatcher::singleton().findSchemaOrThrow("custom::helper", "");
  return handle.entry ? x : 0;
}
}  // namespace at::native

// Virtual methods of a sparse tensor, which no operator names.
namespace at {
struct SparseTensorImpl {
  virtual ~SparseTensorImpl() = default;
  virtual int detach(int x) const;
};
int SparseTensorImpl::detach(int x) const { return _ops::to_sparse_sparse_dim::call(x); }
SparseTensorImpl* make_sparse() { return new SparseTensorImpl; }
}  // namespace at

// A backward formula: the forward kernel makes its node.
namespace torch::autograd::generated {
struct MulBackward0 {
  virtual ~MulBackward0() = default;
  virtual int apply(std::vector<int>&& grads);
};
NOINLINE int MulBackward0::apply(std::vector<int>&& grads) { return at::_ops::linear::call(grads.size()); }
}  // namespace torch::autograd::generated

namespace torch::autograd::VariableType {
NOINLINE int mul_with_node(int x) {
  auto* node = new generated::MulBackward0;
  asm volatile("" : : "r"(node));
  return at::_ops::mul_Tensor::redispatch(2, x);
}
}  // namespace torch::autograd::VariableType

// Static Runtime's own table.
namespace torch::jit {
struct SROperatorFunctor {
  virtual ~SROperatorFunctor() = default;
  int (*fn)(int);
};
struct SROperatorFunctor_aten_mul : SROperatorFunctor {
  int (*fn)(int) = [](int x) { return at::native::mul_kernel(x) + 21; };
};
SROperatorFunctor* make_mul() { return new SROperatorFunctor_aten_mul; }

// Operators that only the interpreter has.
static NOINLINE void upper(c10::Stack* stack) { asm volatile("" : : "r"(stack), "r"(at::_ops::clone::call(3))); }
static NOINLINE void length(c10::Stack* stack) { asm volatile("" : : "r"(stack)); }
static NOINLINE void interpolate(c10::Stack* stack) { asm volatile("" : : "r"(stack), "r"(at::_ops::linear::call(3))); }
static NOINLINE void shadow(c10::Stack* stack) { asm volatile("" : : "r"(stack), "r"(7)); }

struct OperatorGeneratorArgs {
  const char* schema;
  bool creator;
  void (*operation)(c10::Stack*);
  int alias;
};
static const OperatorGeneratorArgs table[] = {
    {"aten::upper.str(str self) -> str", false, upper, 1},
    {"aten::len.t(t[] a) -> int", false, length, 1},
    {"aten::relu(Tensor self) -> Tensor", false, shadow, 1},
    {"no schema -> at all", false, shadow, 1},
};
NOINLINE void register_table(const OperatorGeneratorArgs* begin, const OperatorGeneratorArgs* end) {
  asm volatile("" : : "r"(begin), "r"(end));
}
struct RegisterTable {
  RegisterTable() { register_table(table, table + 4); }
};
static RegisterTable registered_table;

struct RegisterOne {
  NOINLINE RegisterOne(const char* schema, void (*operation)(c10::Stack*)) { asm volatile("" : : "r"(schema), "r"(operation)); }
};
static RegisterOne registered_one("aten::__interpolate(Tensor input, int? size) -> Tensor", interpolate);
}  // namespace torch::jit

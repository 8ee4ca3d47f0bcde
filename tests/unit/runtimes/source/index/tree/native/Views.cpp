#include <core/Tensor.h>

static int nested[2][2] = {{1, 2}, {3, 4}};

namespace at::native {
// Inside, to fool whoever looks for names only: Tensor add(const Tensor& self, const Tensor& other) {
Tensor view(const Tensor& self, long dtype) {
  return nested[0][0] == dtype ? self : Tensor(1'000);
}
static Tensor add(int self) {
  return Tensor(self);
}
Tensor sub(const Tensor&, const Tensor&) {
  return add(1);
}
TORCH_IMPL_FUNC(mul_out)(const Tensor&, const Tensor&) {}
} // namespace at::native

at::Tensor at::native::add(const Tensor& self, const Tensor&) {
  return self;
}

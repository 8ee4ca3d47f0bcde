#include <core/Tensor.h>
#include <native/Helper.h>

namespace at::native {
DEFINE_DISPATCH(neg_stub);
DEFINE_DISPATCH(abs_stub);
DEFINE_OLD_DISPATCH(copy_stub);
namespace cpublas {
DEFINE_OLD_DISPATCH(copy_stub);
}

static auto lookup = [](int x) {
  return x + copied_everywhere();
};

_Pragma("GCC diagnostic push")
Tensor view(const Tensor& self, IntArrayRef size) {
  return lookup(int(size.length)) ? self : Tensor();
}

TORCH_IMPL_FUNC(add_out)
(const Tensor& self, const Tensor& out) {
  (void)self;
  (void)out;
}
} // namespace at::native
namespace at {
namespace meta {
TORCH_META_FUNC2(add, Tensor)(const Tensor& self) {
  (void)self;
}
}
}

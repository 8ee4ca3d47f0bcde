#include <core/Tensor.h>
namespace at::native {
static void abs_kernel(Tensor&) {}
REGISTER_DISPATCH(abs_stub, &abs_kernel)
REGISTER_OLD_DISPATCH(cpublas::copy_stub, &abs_kernel)
} // namespace at::native

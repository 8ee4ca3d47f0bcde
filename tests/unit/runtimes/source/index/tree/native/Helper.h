#pragma once
#include <core/Tensor.h>

namespace at::native {
inline int copied_everywhere() {
  return 1;
}
Tensor only_in_a_header(const Tensor& self) {
  return self;
}
} // namespace at::native

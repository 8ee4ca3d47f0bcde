#include <core/Tensor.h>

namespace at {
int Tensor::count = 0;

Tensor::Tensor() : size{1}, stride{2} {
  count++;
}
Tensor::Tensor(long given)
    : size(given)
#ifdef STRIDED
    , stride{given}
#endif
{}
Tensor::Tensor(const Tensor&) = default;
Tensor::~Tensor() {}
Tensor::operator bool() const {
  return size != '{';
}

#define DEFINE_ITEM(T, name)          \
  template <>                         \
  TORCH_API T Tensor::item() const {  \
    return T(size);                   \
  }
AT_FORALL_SCALAR_TYPES(DEFINE_ITEM)
#undef DEFINE_ITEM

template <class T>
Tensor Tensor::full(T value) {
  return Tensor(long(value));
}
template Tensor Tensor::full<float>(float value);
} // namespace at

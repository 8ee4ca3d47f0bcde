#include <core/Tensor.h>
using namespace at;
struct Derived : c10::Allocator {
  void* allocate(long) override { return nullptr; }
};
struct Drained : c10::Allocator::Pool {};
int main() {
  Tensor a, b(2);
  c10::Stream* out = nullptr;
  *out << a;
  *out << c10::DispatchKey::CPU;
  *out << c10::Scalar{1};
  a.item<float>();
  a.item<long>();
  Tensor::full<float>(1.0f);
  native::view(a, {});
  native::view(a, 1L);
  native::add(a, b);
  native::sub(a, b);
  native::only_in_a_header(a);
  native::structured_add_out().impl(a, b);
  native::structured_mul_out().impl(a, b);
  meta::structured_add_Tensor().meta(a);
  native::DispatchStub<native::unary_fn, native::neg_stub_DECLARE_DISPATCH_type>::DEFAULT(a);
  native::DispatchStub<native::unary_fn, native::abs_stub_DECLARE_DISPATCH_type>::DEFAULT(a);
  native::DispatchStub<native::unary_fn, struct native::copy_stub>::DEFAULT(a);
  native::DispatchStub<native::unary_fn, struct native::cpublas::copy_stub>::DEFAULT(a);
  Derived allocator;
  Drained pool;
  return bool(a) + native::neg_stub.filler + native::abs_stub.filler + native::copy_stub.filler +
      native::cpublas::copy_stub.filler + FLAGS_keep_on_shrink + c10::version + c10::depth +
      int(c10::LongFactory::make(1)) + get_num_threads() + Tensor::count + mz_crc32(1) + allocator.inner();
}

#include <core/Tensor.h>

C10_DEFINE_bool(keep_on_shrink, true)

namespace {
int hidden(int x) {
  return x;
}
} // namespace

namespace c10 {
#if defined(WIDE)
void Allocator::release(void* memory) {
  if (memory) {
#else
void Allocator::release(void*) {
  if (hidden(1)) {
#endif
    depth = 0;
  }
}

extern const int version = 3;
thread_local int depth = hidden(2);
void Allocator::Pool::drain() {}
template <>
long LongFactory::make(int seed) {
  return seed;
}
} // namespace c10

c10::Stream& c10::operator<<(c10::Stream& out, c10::DispatchKey) {
  return out;
}

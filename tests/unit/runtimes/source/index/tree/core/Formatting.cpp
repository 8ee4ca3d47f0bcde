#include <core/Tensor.h>

namespace c10 {
struct Stream {
  int length;
};
Stream& operator<<(Stream& out, const Scalar&) {
  return out;
}
} // namespace c10

namespace at {
static const char* const table[] = {"{", "}", R"({"a": "{"})"};

c10::Stream& operator<<(c10::Stream& out, const Tensor&) {
  return table[0] ? out : out; // an apostrophe's comment {
}
} // namespace at

#include <torch/library.h>

namespace ops {
void call_conv();
void call_mm_out();
void call_fft();
struct Found {};
inline Found findSchemaOrThrow(const char*, const char*) { return {}; }
} // namespace ops

namespace {
void conv(int) { ops::call_mm_out(); }
void mm_out() {}
void conv_quantized(double) { ops::findSchemaOrThrow("toy::named", "by"); }
void fft() { ops::call_conv(); }
void named() {}
void lonely() {}

TORCH_LIBRARY(toy, m) {
  m.def("conv(int x) -> int", {at::Tag::core, at::Tag::pointwise});
  m.def("mm.out(int x) -> int");
  m.def("fft(int x) -> int", {});
  m.def(TORCH_SELECTIVE_SCHEMA("toy::named.by(int x) -> int"));
  m.def("lonely(int x) -> int");
}

TORCH_LIBRARY_IMPL(toy, CPU, m) {
  m.impl("conv", TORCH_FN(conv));
  m.impl("mm.out", mm_out);
  m.impl(TORCH_SELECTIVE_NAME("toy::fft"), TORCH_FN(fft));
  m.impl("named.by", named);
  m.impl("lonely", [] {
    return static_cast<void (*)()>(&lonely);
  }());
}

#ifdef NEVER_DEFINED
TORCH_LIBRARY_IMPL(toy, CPU, m) {
  m.impl("conv", conv);
}
#endif

TORCH_LIBRARY_IMPL(toy, QuantizedCPU, m) {
  m.impl("conv", conv_quantized);
}
} // namespace

#include <torch/library.h>

namespace ops {
// toy::conv(int x) -> int
static int create_conv_typed_handle() {
  return 0;
}
void call_conv() { create_conv_typed_handle(); torch::dispatch("toy::conv"); }
// toy::mm.out(int x) -> int
static int create_mm_out_typed_handle() {
  return 0;
}
void call_mm_out() { create_mm_out_typed_handle(); torch::dispatch("toy::mm.out"); }
// toy::fft(int x) -> int
static int create_fft_typed_handle() {
  return 0;
}
void call_fft() { create_fft_typed_handle(); torch::dispatch("toy::fft"); }
} // namespace ops

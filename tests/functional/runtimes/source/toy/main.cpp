#include <torch/library.h>
#include <cstdio>
namespace ops { void call_conv(); void call_mm_out(); void call_fft(); }
int main(int argc, char**) {
#ifdef ROOT_CONV
  if (argc > 1) ops::call_conv();
#endif
#ifdef ROOT_MM
  if (argc > 1) ops::call_mm_out();
#endif
  for (auto& entry : torch::registry()) std::puts(entry.first.c_str());
}

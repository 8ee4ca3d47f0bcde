// Runs a model for the lite interpreter on ones, and prints the first numbers of the tensor that it returns.
#include <c10/core/InferenceMode.h>
#include <opsieve/tensor.h>
#include <torch/csrc/jit/mobile/import.h>
#include <torch/csrc/jit/mobile/module.h>

#include <cstdio>
#include <sstream>

int main(int count, char** words) try {
  if (count != 3) {
    return std::fprintf(stderr, "usage: app MODEL SHAPE, such as: app model.ptl 1,3,224,224\n"), 2;
  }
  std::vector<int64_t> shape;
  std::istringstream sizes(words[2]);
  for (std::string size; std::getline(sizes, size, ',');) {
    shape.push_back(std::stoll(size));
  }
  c10::InferenceMode guard;
  auto model = torch::jit::_load_for_mobile(std::string(words[1]));
  const at::Tensor input = opsieve::empty_tensor(shape);
  std::fill_n(static_cast<float*>(opsieve::tensor_data(input)), input.numel(), 1.0F);
  const at::Tensor output = model.forward({input}).toTensor();
  for (int64_t place = 0; place < std::min<int64_t>(output.numel(), 5); ++place) {
    std::printf("%g\n", static_cast<const float*>(opsieve::tensor_data(output))[place]);
  }
} catch (const c10::Error& error) {
  std::fprintf(stderr, "%s\n", error.what_without_backtrace());
  return 1;
}

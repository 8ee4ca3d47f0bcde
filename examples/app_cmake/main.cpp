// Loads a model for the lite interpreter, runs it on ones, and prints the first numbers of the tensor it returns.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/mobile/import.h>
#include <torch/csrc/jit/mobile/module.h>

#include <cstdio>
#include <sstream>

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: app MODEL SHAPE, such as: app model.ptl 1,3,224,224\n");
    return 2;
  }
  std::vector<int64_t> shape;
  std::istringstream sizes(words[2]);
  for (std::string size; std::getline(sizes, size, ',');) {
    shape.push_back(std::stoll(size));
  }
  try {
    c10::InferenceMode guard;
    auto model = torch::jit::_load_for_mobile(words[1]);
    std::vector<float> ones(c10::multiply_integers(shape), 1.0F);
    const at::Tensor input = at::from_blob(ones.data(), shape, at::kFloat);
    const at::Tensor output = model.forward({input}).toTensor();
    const auto* numbers = static_cast<const float*>(output.data_ptr());
    for (int64_t place = 0; place < output.numel() && place < 5 && output.scalar_type() == at::kFloat; ++place) {
      std::printf("%g\n", numbers[place]);
    }
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "%s\n", error.what_without_backtrace());
    return 1;
  }
}

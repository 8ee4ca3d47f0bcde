// A C++ program that uses the slim libtorch as an application does: loads a model, runs it, calls a pruned operator.
#include <torch/script.h>

#include <iostream>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  torch::jit::Module model = torch::jit::load(arguments[1]);
  model.eval();
  c10::InferenceMode guard;
  at::Tensor input = at::full({1, 3, 64, 64}, 0.5);
  at::Tensor output = model.forward({input}).toTensor();
  std::cout << output.sizes() << " " << output.sum().item<double>() << std::endl;
  try {
    at::lgamma(input);
    std::cout << "lgamma is there" << std::endl;
  } catch (const c10::Error& error) {
    std::cout << "c10::Error " << error.what_without_backtrace() << std::endl;
  }
  return 0;
}

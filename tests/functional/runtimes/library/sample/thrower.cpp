// Stands for libc10.so: the function that raises, under the name that PyTorch gives it.
#include <stdexcept>
#include <string>

namespace c10::detail {
[[noreturn]] __attribute__((visibility("default"))) void torchCheckFail(
    const char* function, const char* file, unsigned line, const char* message) {
  throw std::runtime_error(std::string(function) + "|" + file + "|" + std::to_string(line) + "|" + message);
}
}  // namespace c10::detail

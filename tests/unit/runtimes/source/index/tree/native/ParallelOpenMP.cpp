#include <core/Tensor.h>
#if AT_PARALLEL_OPENMP
namespace at {
int get_num_threads() {
  return 2;
}
} // namespace at
#endif

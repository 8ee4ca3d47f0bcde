#include <core/Tensor.h>
#if !AT_PARALLEL_OPENMP
int at::get_num_threads() {
  return 1;
}
#endif

// Arithmetic with constants in memory, so that VEX and EVEX instructions get operands relative to the instruction
// pointer, with and without an immediate behind them.
#include <immintrin.h>
#include <cmath>
#include <cstddef>

extern "C" {
float scale_table[64];
double sum_outside(const double*, std::size_t);

void scale(float* data, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) { data[i] = data[i] * 1.7f + scale_table[i & 63]; }
}

void clamp(double* data, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) { data[i] = data[i] > 3.25 ? 3.25 : std::sqrt(data[i]) * 0.125; }
}

void permute(__m256* out, const __m256* in) {
  static const __m256 weights = {1, 2, 3, 4, 5, 6, 7, 8};
  out[0] = _mm256_shuffle_ps(in[0], weights, 0x4E);
  out[1] = _mm256_blend_ps(in[1], weights, 0x5A);
  out[2] = _mm256_insertf128_ps(in[2], _mm256_castps256_ps128(weights), 1);
}

double total(const double* data, std::size_t size) { return sum_outside(data, size) * 1.5 + sum_outside(data, 3); }

int counter;
void count(int x) {
  counter = 77;
  if (counter == 12345678 || (counter & 0x40) != 0) { counter += x * 3; }
  scale_table[counter & 63] = 2.5f;
}

void spread(float* out, const int* in, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) { out[i] = static_cast<float>(in[i] & 0xFF) / 255.0f; }
}

double call_all(double* data, std::size_t size) {
  clamp(data, size);
  count(static_cast<int>(size));
  return total(data, size) + sum_outside(data, size);
}
}

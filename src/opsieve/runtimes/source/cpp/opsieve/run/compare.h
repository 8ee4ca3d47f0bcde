// How far two arrays are apart.
#pragma once

#include <opsieve/run/array.h>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cmath>

namespace opsieve {
namespace run {

struct Difference {
  double absolute = 0; // the largest
  double relative = 0; // that, as a part of the largest value expected
  std::string problem; // what cannot be compared; empty if nothing
  bool is_exact = false; // integers and booleans must be equal

  bool is_within(double tolerance) const {
    return problem.empty() && (is_exact ? absolute == 0 : relative <= tolerance);
  }
};

namespace detail {

inline bool is_integer(c10::ScalarType type) {
  return type == c10::ScalarType::Long || type == c10::ScalarType::Int || type == c10::ScalarType::Short ||
      type == c10::ScalarType::Char || type == c10::ScalarType::Byte || type == c10::ScalarType::Bool;
}

template <class T>
T element(const Array& array, std::size_t place) {
  T value;
  std::memcpy(&value, array.bytes.data() + place * sizeof(T), sizeof(T));
  return value;
}

inline std::int64_t integer_at(const Array& array, std::size_t place) {
  switch (array.dtype) {
    case c10::ScalarType::Long:
      return element<std::int64_t>(array, place);
    case c10::ScalarType::Int:
      return element<std::int32_t>(array, place);
    case c10::ScalarType::Short:
      return element<std::int16_t>(array, place);
    case c10::ScalarType::Char:
      return element<std::int8_t>(array, place);
    default:
      return element<std::uint8_t>(array, place);
  }
}

inline double real_at(const Array& array, std::size_t place) {
  switch (array.dtype) {
    case c10::ScalarType::Float:
    case c10::ScalarType::ComplexFloat:
      return element<float>(array, place);
    case c10::ScalarType::Double:
    case c10::ScalarType::ComplexDouble:
      return element<double>(array, place);
    case c10::ScalarType::Half:
      return static_cast<float>(element<c10::Half>(array, place));
    default:
      return static_cast<float>(element<c10::BFloat16>(array, place));
  }
}

inline bool is_complex(c10::ScalarType type) {
  return type == c10::ScalarType::ComplexFloat || type == c10::ScalarType::ComplexDouble;
}

inline std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (const std::int64_t size : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  }
  return text + ")";
}

inline double apart(double one, double other) {
  if (one == other || (std::isnan(one) && std::isnan(other))) {
    return 0;
  }
  const double difference = std::fabs(one - other);
  return std::isnan(difference) ? INFINITY : difference;
}

} // namespace detail

inline Difference compare(const Array& got, const Array& expected) {
  Difference result;
  result.is_exact = detail::is_integer(expected.dtype);
  if (got.shape != expected.shape) {
    result.problem = "its shape is " + detail::shape_text(got.shape) + ", expected " + detail::shape_text(expected.shape);
  } else if (result.is_exact != detail::is_integer(got.dtype) ||
             detail::is_complex(got.dtype) != detail::is_complex(expected.dtype)) {
    result.problem = std::string("its type is ") + c10::toString(got.dtype) + ", expected " + c10::toString(expected.dtype);
  }
  if (!result.problem.empty()) {
    return result;
  }
  const std::size_t count = element_count(got.shape) * (detail::is_complex(got.dtype) ? 2 : 1);
  double largest = 0;
  for (std::size_t place = 0; place < count; ++place) {
    if (result.is_exact) {
      const std::int64_t one = detail::integer_at(got, place);
      const std::int64_t other = detail::integer_at(expected, place);
      // At least 1 if they differ, however large they are.
      const double difference = std::fabs(static_cast<double>(one) - static_cast<double>(other));
      result.absolute = std::max(result.absolute, one == other ? 0 : std::max(difference, 1.0));
      largest = std::max(largest, std::fabs(static_cast<double>(other)));
    } else {
      const double other = detail::real_at(expected, place);
      result.absolute = std::max(result.absolute, detail::apart(detail::real_at(got, place), other));
      largest = std::isfinite(other) ? std::max(largest, std::fabs(other)) : largest;
    }
  }
  result.relative = result.absolute == 0 || largest == 0 ? result.absolute : result.absolute / largest;
  return result;
}

} // namespace run
} // namespace opsieve

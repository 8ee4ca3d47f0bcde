// The arguments that a method gets, and what it returns.
#pragma once

#include <opsieve/run/npy.h>
#include <opsieve/run/options.h>

#include <ATen/core/ivalue.h>

namespace opsieve {
namespace run {

namespace detail {

template <class T>
void put(Array& array, std::size_t place, T value) {
  std::memcpy(array.bytes.data() + place * sizeof(T), &value, sizeof(T));
}

inline void put_number(Array& array, std::size_t place, std::uint64_t state, std::int64_t below) {
  const float fraction = static_cast<float>(state >> 40) / 16777216.0F;
  const auto integer = static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(below));
  switch (array.dtype) {
    case c10::ScalarType::Float:
      return put(array, place, fraction);
    case c10::ScalarType::Double:
      return put(array, place, static_cast<double>(fraction));
    case c10::ScalarType::Half:
      return put(array, place, c10::Half(fraction));
    case c10::ScalarType::BFloat16:
      return put(array, place, c10::BFloat16(fraction));
    case c10::ScalarType::Long:
      return put(array, place, integer);
    case c10::ScalarType::Int:
      return put(array, place, static_cast<std::int32_t>(integer));
    case c10::ScalarType::Short:
      return put(array, place, static_cast<std::int16_t>(integer));
    case c10::ScalarType::Char:
      return put(array, place, static_cast<std::int8_t>(integer));
    case c10::ScalarType::Byte:
      return put(array, place, static_cast<std::uint8_t>(integer));
    case c10::ScalarType::Bool:
      return put(array, place, static_cast<std::uint8_t>(state >> 63));
    default:
      throw Usage(std::string("cannot make numbers of type ") + c10::toString(array.dtype));
  }
}

} // namespace detail

// The same numbers in every language; the help text says how.
inline Array made_up(c10::ScalarType dtype, const std::vector<std::int64_t>& shape, std::size_t index, std::int64_t below) {
  Array array;
  array.dtype = dtype;
  array.shape = shape;
  const std::size_t count = element_count(shape);
  array.bytes.resize(count * c10::elementSize(dtype));
  std::uint64_t state = index;
  for (std::size_t place = 0; place < count; ++place) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    detail::put_number(array, place, state, below);
  }
  return array;
}

inline c10::IValue scalar(const std::string& text) {
  if (text == "true" || text == "false") {
    return text == "true";
  }
  if (text == "none") {
    return c10::IValue();
  }
  char* end = nullptr;
  errno = 0;
  const std::int64_t integer = std::strtoll(text.c_str(), &end, 10);
  if (!text.empty() && *end == '\0' && errno == 0) {
    return integer;
  }
  const double number = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0') {
    return number;
  }
  return text;
}

inline c10::IValue argument(const InputOption& input, std::size_t index, std::int64_t below) {
  if (input.kind == InputOption::kValue) {
    return scalar(input.text);
  }
  if (input.kind == InputOption::kFile && !input.has_shape) {
    return to_tensor(read_npy(input.text));
  }
  const Dtype* dtype = find_dtype(input.dtype);
  if (dtype == nullptr) {
    throw Usage("there is no dtype '" + input.dtype + "'");
  }
  return to_tensor(
      input.kind == InputOption::kFile ? read_raw(input.text, dtype->type, input.shape)
                                       : made_up(dtype->type, input.shape, index, below));
}

namespace detail {

template <class T>
Array one(c10::ScalarType dtype, T value) {
  Array array;
  array.dtype = dtype;
  array.bytes.resize(sizeof(T));
  put(array, 0, value);
  return array;
}

} // namespace detail

// Tensors and numbers, in order; lists, tuples and dictionaries are walked, what is neither is left out.
inline void flatten(const c10::IValue& value, std::vector<Array>& into) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) {
      into.push_back(from_tensor(value.toTensor()));
    }
  } else if (value.isBool()) {
    into.push_back(detail::one<std::uint8_t>(c10::ScalarType::Bool, value.toBool() ? 1 : 0));
  } else if (value.isInt()) {
    into.push_back(detail::one<std::int64_t>(c10::ScalarType::Long, value.toInt()));
  } else if (value.isDouble()) {
    into.push_back(detail::one<double>(c10::ScalarType::Double, value.toDouble()));
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) {
      flatten(element, into);
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      flatten(element, into);
    }
  } else if (value.isGenericDict()) {
    for (const auto& element : value.toGenericDict()) {
      flatten(element.value(), into);
    }
  }
}

} // namespace run
} // namespace opsieve

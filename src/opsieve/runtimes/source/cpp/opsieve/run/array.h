// Plain arrays, between tensors and files. No operator of PyTorch's is called here: the linker would keep its kernels.
#pragma once

#include <opsieve/tensor.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace opsieve {
namespace run {

// Contiguous, in the machine's order of bytes.
struct Array {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<std::int64_t> shape;
  std::vector<char> bytes;
};

struct Dtype {
  const char* name;
  c10::ScalarType type;
  const char* npy; // what NumPy calls it; null if it does not know it
};

inline const std::vector<Dtype>& dtypes() {
  static const auto* const all = new std::vector<Dtype>{
      {"float", c10::ScalarType::Float, "<f4"},
      {"double", c10::ScalarType::Double, "<f8"},
      {"half", c10::ScalarType::Half, "<f2"},
      {"bfloat16", c10::ScalarType::BFloat16, nullptr},
      {"long", c10::ScalarType::Long, "<i8"},
      {"int", c10::ScalarType::Int, "<i4"},
      {"short", c10::ScalarType::Short, "<i2"},
      {"char", c10::ScalarType::Char, "|i1"},
      {"byte", c10::ScalarType::Byte, "|u1"},
      {"bool", c10::ScalarType::Bool, "|b1"},
      {"complex_float", c10::ScalarType::ComplexFloat, "<c8"},
      {"complex_double", c10::ScalarType::ComplexDouble, "<c16"},
  };
  return *all;
}

// The one that has this name, in either spelling.
inline const Dtype* find_dtype(const std::string& name) {
  static const char* const other[][2] = {{"float32", "float"}, {"float64", "double"}, {"float16", "half"},
                                         {"int64", "long"}, {"int32", "int"}, {"int16", "short"}, {"int8", "char"},
                                         {"uint8", "byte"}};
  for (const Dtype& dtype : dtypes()) {
    bool is_same = name == dtype.name;
    for (const auto& pair : other) {
      is_same = is_same || (name == pair[0] && std::strcmp(pair[1], dtype.name) == 0);
    }
    if (is_same) {
      return &dtype;
    }
  }
  return nullptr;
}

inline const Dtype* find_dtype(c10::ScalarType type) {
  for (const Dtype& dtype : dtypes()) {
    if (dtype.type == type) {
      return &dtype;
    }
  }
  return nullptr;
}

// Of a shape that comes from outside. Throws if it is beyond what memory can hold.
inline std::size_t element_count(const std::vector<std::int64_t>& shape) {
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || (size != 0 && count > (std::uint64_t{1} << 40) / static_cast<std::uint64_t>(size))) {
      throw std::runtime_error("a tensor of that shape would be too large");
    }
    count *= static_cast<std::uint64_t>(size);
  }
  return static_cast<std::size_t>(count);
}

inline at::Tensor to_tensor(const Array& array) {
  return copied_tensor(array.bytes.data(), array.shape, array.dtype);
}

// Copies `shape` elements of `item` bytes that lie `strides` elements apart; a stride may be 0 or, for files, descending.
inline std::vector<char> gather(
    const char* data, const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides, std::size_t item) {
  const std::size_t count = element_count(shape);
  std::vector<char> bytes(count * item);
  std::vector<std::int64_t> index(shape.size(), 0);
  std::int64_t offset = 0;
  for (std::size_t element = 0; element < count; ++element) {
    std::memcpy(bytes.data() + element * item, data + offset * static_cast<std::int64_t>(item), item);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < shape[axis]) {
        break;
      }
      offset -= index[axis] * strides[axis];
      index[axis] = 0;
    }
  }
  return bytes;
}

namespace detail {

// Tensors may put off a conjugation or a change of sign; PyTorch's operators that carry it out are not ours to call.
template <class Part>
void apply_signs(std::vector<char>& bytes, bool real, bool imaginary) {
  auto* parts = reinterpret_cast<Part*>(bytes.data());
  for (std::size_t place = 0; place + 1 < bytes.size() / sizeof(Part); place += 2) {
    parts[place] = real ? -parts[place] : parts[place];
    parts[place + 1] = imaginary ? -parts[place + 1] : parts[place + 1];
  }
}

} // namespace detail

// The numbers of a quantized tensor are its integers.
inline c10::ScalarType plain_type(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::QUInt8:
      return c10::ScalarType::Byte;
    case c10::ScalarType::QInt8:
      return c10::ScalarType::Char;
    case c10::ScalarType::QInt32:
      return c10::ScalarType::Int;
    default:
      return type;
  }
}

inline Array from_tensor(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.layout() != c10::Layout::Strided || !impl.device().is_cpu()) {
    throw std::runtime_error("a returned tensor is not a plain one in memory");
  }
  Array array;
  array.dtype = plain_type(c10::typeMetaToScalarType(impl.dtype()));
  if (find_dtype(array.dtype) == nullptr) {
    throw std::runtime_error(std::string("cannot read numbers of type ") + c10::toString(array.dtype));
  }
  array.shape.assign(impl.sizes().begin(), impl.sizes().end());
  const std::vector<std::int64_t> strides(impl.strides().begin(), impl.strides().end());
  const std::size_t item = c10::elementSize(array.dtype);
  array.bytes = gather(static_cast<const char*>(tensor_data(tensor)), array.shape, strides, item);
  const bool negative = impl.key_set().has(c10::DispatchKey::Negative);
  const bool conjugate = impl.key_set().has(c10::DispatchKey::Conjugate);
  if (array.dtype == c10::ScalarType::ComplexFloat) {
    detail::apply_signs<float>(array.bytes, negative, negative != conjugate);
  } else if (array.dtype == c10::ScalarType::ComplexDouble) {
    detail::apply_signs<double>(array.bytes, negative, negative != conjugate);
  } else if (negative) {
    throw std::runtime_error("a returned tensor is the negative of another, not computed yet");
  }
  return array;
}

} // namespace run
} // namespace opsieve

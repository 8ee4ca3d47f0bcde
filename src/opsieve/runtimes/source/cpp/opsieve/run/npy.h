// Reading and writing NumPy's .npy files, versions 1 to 3 (numpy.lib.format), and raw files of numbers.
#pragma once

#include <opsieve/run/array.h>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace opsieve {
namespace run {

struct FileError : std::runtime_error {
  FileError(const std::string& file, const std::string& problem) : std::runtime_error(file + ": " + problem) {}
};

namespace detail {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

inline File open_file(const std::string& name, const char* mode) {
  File file(std::fopen(name.c_str(), mode), &std::fclose);
  if (!file) {
    throw FileError(name, std::strerror(errno));
  }
  return file;
}

inline std::vector<char> read_bytes(const std::string& name, std::FILE* file, std::size_t count) {
  std::vector<char> bytes(count);
  if (count != 0 && std::fread(bytes.data(), 1, count, file) != count) {
    throw FileError(name, "the file is cut short, or no file");
  }
  return bytes;
}

// What follows 'key': in the header, which is the text of a Python dictionary.
inline std::string entry(const std::string& name, const std::string& header, const std::string& key) {
  const std::size_t found = header.find("'" + key + "'");
  const std::size_t colon = found == std::string::npos ? found : header.find(':', found);
  if (colon == std::string::npos) {
    throw FileError(name, "the header of this .npy file has no '" + key + "'");
  }
  const std::size_t start = header.find_first_not_of(' ', colon + 1);
  return start == std::string::npos ? std::string() : header.substr(start);
}

inline c10::ScalarType npy_dtype(const std::string& name, const std::string& header) {
  const std::string text = entry(name, header, "descr");
  for (const Dtype& dtype : dtypes()) {
    if (dtype.npy != nullptr && text.compare(0, std::strlen(dtype.npy) + 2, "'" + std::string(dtype.npy) + "'") == 0) {
      return dtype.type;
    }
  }
  throw FileError(name, "cannot read numbers of type " + text.substr(0, std::min<std::size_t>(text.find(", "), 20)) +
                            "; write them as float32 or int64, say");
}

inline std::vector<std::int64_t> npy_shape(const std::string& name, const std::string& header) {
  const std::string text = entry(name, header, "shape");
  const std::size_t end = text.find(')');
  std::vector<std::int64_t> shape;
  if (text.empty() || text[0] != '(' || end == std::string::npos) {
    throw FileError(name, "the header of this .npy file has no shape");
  }
  for (std::size_t place = 1; place < end;) {
    const std::size_t comma = std::min(text.find(',', place), end);
    const std::string size = text.substr(place, comma - place);
    if (size.find_first_not_of(' ') != std::string::npos) {
      char* stop = nullptr;
      shape.push_back(std::strtoll(size.c_str(), &stop, 10));
      if (*stop != '\0' || shape.size() > 64) {
        throw FileError(name, "the header of this .npy file has no shape");
      }
    }
    place = comma + 1;
  }
  return shape;
}

inline std::string npy_header(const std::string& name, std::FILE* file) {
  const std::vector<char> start = read_bytes(name, file, 8);
  if (std::memcmp(start.data(), "\x93NUMPY", 6) != 0 || start[6] < 1 || start[6] > 3) {
    throw FileError(name, "this is no .npy file of version 1, 2 or 3");
  }
  const std::vector<char> length = read_bytes(name, file, start[6] == 1 ? 2 : 4);
  std::uint32_t size = 0;
  for (std::size_t place = length.size(); place-- > 0;) {
    size = size << 8 | static_cast<unsigned char>(length[place]);
  }
  if (size > (1U << 20)) {
    throw FileError(name, "the header of this .npy file is too long");
  }
  const std::vector<char> text = read_bytes(name, file, size);
  return {text.begin(), text.end()};
}

inline void expect_end(const std::string& name, std::FILE* file) {
  if (std::fgetc(file) != EOF) {
    throw FileError(name, "the file holds more numbers than its shape");
  }
}

} // namespace detail

inline Array read_npy(const std::string& name) {
  const detail::File file = detail::open_file(name, "rb");
  const std::string header = detail::npy_header(name, file.get());
  Array array;
  array.dtype = detail::npy_dtype(name, header);
  array.shape = detail::npy_shape(name, header);
  const std::size_t item = c10::elementSize(array.dtype);
  array.bytes = detail::read_bytes(name, file.get(), element_count(array.shape) * item);
  detail::expect_end(name, file.get());
  if (detail::entry(name, header, "fortran_order").compare(0, 4, "True") == 0) {
    std::vector<std::int64_t> strides;
    std::int64_t stride = 1;
    for (const std::int64_t size : array.shape) {
      strides.push_back(stride);
      stride *= size;
    }
    array.bytes = gather(array.bytes.data(), array.shape, strides, item);
  }
  return array;
}

inline Array read_raw(const std::string& name, c10::ScalarType dtype, const std::vector<std::int64_t>& shape) {
  const detail::File file = detail::open_file(name, "rb");
  Array array;
  array.dtype = dtype;
  array.shape = shape;
  array.bytes = detail::read_bytes(name, file.get(), element_count(shape) * c10::elementSize(dtype));
  detail::expect_end(name, file.get());
  return array;
}

// NumPy has no bfloat16: widened to float.
inline Array known_to_numpy(const Array& array) {
  if (array.dtype != c10::ScalarType::BFloat16) {
    return array;
  }
  Array wide;
  wide.shape = array.shape;
  wide.bytes.assign(array.bytes.size() * 2, 0);
  for (std::size_t place = 0; place < array.bytes.size(); place += 2) {
    std::memcpy(wide.bytes.data() + 2 * place + 2, array.bytes.data() + place, 2);
  }
  return wide;
}

inline void write_npy(const std::string& name, const Array& given) {
  const Array array = known_to_numpy(given);
  std::string header = "{'descr': '" + std::string(find_dtype(array.dtype)->npy) + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t size : array.shape) {
    header += std::to_string(size) + ",";
  }
  header += "), }";
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 0xff);
  start += static_cast<char>(header.size() >> 8);
  detail::File file = detail::open_file(name, "wb");
  const bool written = std::fwrite(start.data(), 1, start.size(), file.get()) == start.size() &&
      std::fwrite(header.data(), 1, header.size(), file.get()) == header.size() &&
      std::fwrite(array.bytes.data(), 1, array.bytes.size(), file.get()) == array.bytes.size();
  if (std::fclose(file.release()) != 0 || !written) {
    throw FileError(name, std::strerror(errno));
  }
}

} // namespace run
} // namespace opsieve

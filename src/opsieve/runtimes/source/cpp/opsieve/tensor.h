// Tensors without calling an operator: at::empty and at::from_blob would have to be in the runtime.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/ScalarType.h>
#include <c10/core/TensorImpl.h>

#include <cstring>

namespace opsieve {

// Contiguous, not initialised. Throws c10::Error if there is not enough memory; no size may be negative.
inline at::Tensor empty_tensor(at::IntArrayRef shape, at::ScalarType dtype = at::kFloat) {
  std::size_t bytes = c10::elementSize(dtype);
  for (const int64_t size : shape) {
    bytes *= static_cast<std::size_t>(size);
  }
  c10::Allocator* allocator = c10::GetCPUAllocator();
  c10::Storage storage(c10::Storage::use_byte_size_t{}, bytes, allocator->allocate(bytes), allocator, /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  return tensor;
}

// The first number of a tensor, wherever in its memory that is.
inline void* tensor_data(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return static_cast<char*>(impl.storage().unsafeGetStorageImpl()->data_ptr().get()) +
      impl.storage_offset() * static_cast<int64_t>(impl.itemsize());
}

// A copy of contiguous numbers, as many as the shape says.
inline at::Tensor copied_tensor(const void* numbers, at::IntArrayRef shape, at::ScalarType dtype = at::kFloat) {
  at::Tensor tensor = empty_tensor(shape, dtype);
  if (tensor.numel() != 0) {
    std::memcpy(tensor_data(tensor), numbers, tensor.numel() * c10::elementSize(dtype));
  }
  return tensor;
}

} // namespace opsieve

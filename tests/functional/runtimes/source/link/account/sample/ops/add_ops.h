#pragma once

// As PyTorch 1 generates it.
namespace at {
namespace _ops {

struct TORCH_API add_Tensor {
  using schema = void ();
  STATIC_CONSTEXPR_STR_INL_EXCEPT_WIN_CUDA(name, "test::add")
  STATIC_CONSTEXPR_STR_INL_EXCEPT_WIN_CUDA(overload_name, "Tensor")
  STATIC_CONSTEXPR_STR_INL_EXCEPT_WIN_CUDA(schema_str, "add.Tensor() -> ()")
  static void call();
  static void redispatch();
};

struct TORCH_API relu {
  using schema = void ();
  STATIC_CONSTEXPR_STR_INL_EXCEPT_WIN_CUDA(name, "test::relu")
  STATIC_CONSTEXPR_STR_INL_EXCEPT_WIN_CUDA(overload_name, "")
  static void call();
};

}} // namespace at::_ops

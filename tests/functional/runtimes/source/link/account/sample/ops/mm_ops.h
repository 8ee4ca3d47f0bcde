#pragma once

// As PyTorch 2 generates it.
namespace at {
namespace _ops {

struct TORCH_API mm {
  using schema = void ();
  static constexpr const char* name = "test::mm";
  static constexpr const char* overload_name = "";
  static constexpr const char* schema_str = "mm() -> ()";
  static void call();
  static void redispatch();
};

}} // namespace at::_ops

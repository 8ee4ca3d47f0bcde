// A registry of names with the interface that PyTorch's registration code uses.
#pragma once
#include <ATen/core/enum_tag.h>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace c10 {
enum class DispatchKey : std::uint16_t { CPU, QuantizedCPU };
}

#define TORCH_FN(f) f
#define TORCH_SELECTIVE_NAME(n) n
#define TORCH_SELECTIVE_SCHEMA(n) n

namespace torch {
using Registry = std::map<std::string, void (*)()>;
inline Registry& registry() { static Registry it; return it; }

class Library {
 public:
  enum Kind { DEF, IMPL, FRAGMENT };
  Library(Kind, std::string ns, std::optional<c10::DispatchKey> key, const char*, std::uint32_t)
      : ns_(std::move(ns)), key_(key) {}
  template <class F> Library& impl(const char* name, F* f) {
    registry()[full(name) + "/" + (key_ == c10::DispatchKey::CPU ? "CPU" : "QuantizedCPU")] =
        reinterpret_cast<void (*)()>(f);
    return *this;
  }
  Library& def(const char* schema, const std::vector<at::Tag>& tags = {}) {
    registry()[full(schema) + "#" + std::to_string(tags.size())] = nullptr;
    return *this;
  }

 private:
  std::string full(std::string name) const {
    name = name.substr(0, name.find('('));
    return name.find("::") == std::string::npos ? ns_ + "::" + name : name;
  }
  std::string ns_;
  std::optional<c10::DispatchKey> key_;
};
inline void dispatch(const std::string& name) { registry().at(name + "/CPU")(); }
} // namespace torch

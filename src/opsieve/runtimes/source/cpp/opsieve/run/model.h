// Loading and calling a model, with either of TorchScript's interpreters.
#pragma once

#ifdef BUILD_LITE_INTERPRETER
#include <torch/csrc/jit/mobile/function.h>
#include <torch/csrc/jit/mobile/import.h>
#include <torch/csrc/jit/mobile/module.h>
#include <torch/csrc/jit/mobile/parse_operators.h>
#include <torch/csrc/jit/mobile/prim_ops_registery.h>
#include <torch/csrc/jit/runtime/operator.h>
#else
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#endif

#include <set>
#include <string>
#include <vector>

namespace opsieve {
namespace run {

#ifdef BUILD_LITE_INTERPRETER

using Model = torch::jit::mobile::Module;

inline Model load(const std::string& file) {
  return torch::jit::_load_for_mobile(file);
}

// For who gives a model of the other interpreter.
inline std::string with_format_hint(const std::string& problem) {
  return problem.find("bytecode.pkl") == std::string::npos
      ? problem
      : problem + "\nthis program has the lite interpreter: give it what _save_for_lite_interpreter wrote, or make it with"
                  "\nopsieve build --interpreter full";
}

namespace detail {

inline bool is_known(const c10::OperatorName& name) {
  const std::string text = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
  return torch::jit::mobile::hasPrimOpsFn(text) || torch::jit::findOperatorFor(name) != nullptr;
}

} // namespace detail

// Every operator that the model's methods call and this runtime lacks: some versions name only the first when they load.
// Throws whatever loading throws for other reasons.
inline std::set<std::string> missing_operators(const std::string& file) {
  torch::jit::ExtraFilesMap extra;
  const std::uint64_t all = torch::jit::kDefaultMobileLoadOptions;
  const Model model = torch::jit::_load_for_mobile(
      file, {}, extra, all & ~static_cast<std::uint64_t>(torch::jit::MobileModuleLoadOptions::OPERATOR_CHECK));
  std::set<std::string> missing;
  for (const auto& function : model.compilation_unit().methods()) {
    for (const c10::OperatorName& name : function->get_code().op_names_) {
      if (!detail::is_known(name)) {
        missing.insert(c10::toString(name));
      }
    }
  }
  return missing;
}

inline std::vector<std::string> methods(const Model& model) {
  std::vector<std::string> names;
  for (const auto& method : model.get_methods()) {
    names.push_back(method.name());
  }
  return names;
}

#else

using Model = torch::jit::Module;

inline Model load(const std::string& file) {
  return torch::jit::load(file);
}

// It reads the files of both.
inline std::string with_format_hint(const std::string& problem) {
  return problem;
}

// The full interpreter compiles the model when it loads it, and ends at the first that is missing.
inline std::set<std::string> missing_operators(const std::string&) {
  return {};
}

inline std::vector<std::string> methods(const Model& model) {
  std::vector<std::string> names;
  for (const auto& method : model.get_methods()) {
    names.push_back(method.name());
  }
  return names;
}

#endif

// Throws c10::Error if the model has no such method.
inline c10::IValue call(Model& model, const std::string& method, const std::vector<c10::IValue>& inputs) {
  return model.get_method(method)(inputs);
}

} // namespace run
} // namespace opsieve

// Which operators a run dispatches: the list for a runtime with the traced policy.
#pragma once

#include <ATen/core/operator_name.h>
#include <ATen/record_function.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

namespace opsieve {
namespace run {

// All threads' operators, overloads included. Operators that only the interpreter has do not pass here; a model's file
// names them.
class Recorded {
 public:
  static void start() {
    at::addGlobalCallback(at::RecordFunctionCallback(&note).scopes({at::RecordScope::FUNCTION}));
  }

  static void write(const std::string& file) {
    std::FILE* const stream = std::fopen(file.c_str(), "w");
    if (stream == nullptr) {
      throw std::runtime_error("cannot write " + file);
    }
    for (const std::string& name : names()) {
      std::fprintf(stream, "%s\n", name.c_str());
    }
    if (std::fclose(stream) != 0) {
      throw std::runtime_error("cannot write " + file);
    }
  }

 private:
  static std::set<std::string>& names() {
    static std::set<std::string> all;
    return all;
  }

  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& function) {
    if (const auto name = function.operator_name()) {
      static std::mutex mutex;
      const std::lock_guard<std::mutex> lock(mutex);
      // A bare name would mean all overloads.
      names().insert(name->name + "." + (name->overload_name.empty() ? "default" : name->overload_name));
    }
    return nullptr;
  }
};

} // namespace run
} // namespace opsieve

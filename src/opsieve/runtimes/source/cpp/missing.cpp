// What PyTorch says when something was left out, and how to add it.
#include <opsieve/explain.h>

#include <c10/util/Exception.h>

#include <algorithm>
#include <vector>

namespace opsieve {
namespace {

constexpr const char* kOurs = "this runtime was made by opsieve";

// What stands between the first `before` and the next of `after`; empty if either is not there.
std::string between(const std::string& text, const char* before, const char* after) {
  const std::size_t found = text.find(before);
  if (found == std::string::npos) {
    return {};
  }
  const std::size_t start = found + std::char_traits<char>::length(before);
  const std::size_t end = text.find_first_of(after, start);
  return end == std::string::npos ? text.substr(start) : text.substr(start, end - start);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(", ", start), text.size());
    words.push_back(text.substr(start, end - start));
    start = end + 2;
  }
  return words;
}

// The operators that a message says are not here. The texts are those of torch/csrc/jit/mobile/function.cpp,
// ATen/core/dispatch/Dispatcher.cpp and OperatorEntry.cpp, torch/csrc/jit/frontend/schema_matching.cpp and
// torch/csrc/jit/runtime/operator.cpp.
std::vector<std::string> operators(const std::string& text) {
  static const char* const known[][2] = {
      {"Could not find schema for ", " \n"},
      {"Could not run '", "'"},
      {"no fallback function is registered for schema ", " \n"},
      {"Unknown builtin op: ", " \n"},
      {"Couldn't find an operator for ", "( \n"},
  };
  std::vector<std::string> names = split(between(text, "Following ops cannot be found: [", "]"));
  for (const auto& pattern : known) {
    std::string name = between(text, pattern[0], pattern[1]);
    while (!name.empty() && name.back() == '.') {
      name.pop_back();
    }
    if (name.find("::") != std::string::npos) {
      names.push_back(name);
    }
  }
  return names;
}

// The custom class that is not here, by the texts of torch/csrc/jit/mobile/type_parser.cpp and flatbuffer_loader.cpp and
// torch/csrc/jit/frontend/script_type_parser.cpp.
std::string custom_class(const std::string& text) {
  std::string name = between(text, "The implementation of class ", " \n");
  if (name.empty()) {
    name = between(text, "Unknown type name '", "'");
  }
  const std::size_t found = name.find("torch.classes.");
  return found == std::string::npos ? std::string() : name.substr(found);
}

std::string joined(const std::vector<std::string>& words, const char* before_each, const char* between_them) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : between_them) + (before_each + word);
  }
  return text;
}

std::string added(const std::string& text) {
  const std::vector<std::string> names = operators(text);
  if (!names.empty()) {
    return std::string("\n") + kOurs + " and holds only what its models need; left out: " + joined(names, "", ", ") +
        "\nto add: name this model too, or give " + joined(names, "--op ", " ") + " to opsieve build";
  }
  const std::string name = custom_class(text);
  if (!name.empty()) {
    return std::string("\n") + kOurs + " and holds only what its models need; left out: the class " + name +
        "\nto add: name this model too when calling opsieve build";
  }
  const std::string dtype = between(text, "dtype '", "'");
  const std::string kernel = between(text, "' not selected for kernel tag ", " \n");
  if (!dtype.empty() && !kernel.empty()) {
    return std::string("\n") + kOurs + " for some dtypes only; left out: " + dtype + " of " + kernel +
        "\nto add: give this dtype in --dtypes of opsieve build, or leave --dtypes out";
  }
  return {};
}

} // namespace

std::string explained(std::string message) {
  if (message.find(kOurs) == std::string::npos) {
    message += added(message);
  }
  return message;
}

std::string explain(const std::exception& error) {
  const auto* ours = dynamic_cast<const c10::Error*>(&error);
  return explained(ours != nullptr ? ours->what_without_backtrace() : error.what());
}

} // namespace opsieve

// The command line of the runner.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace opsieve {
namespace run {

struct Usage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One argument of the method.
struct InputOption {
  enum Kind { kShape, kFile, kValue } kind = kShape;
  std::vector<std::int64_t> shape;
  bool has_shape = false;
  std::string dtype = "float";
  std::string text; // the file, or the value
};

struct Options {
  std::string model;
  std::string method = "forward";
  std::vector<InputOption> inputs;
  std::vector<std::string> expected;
  std::string output;
  std::string operators;
  std::int64_t below = 10;
  std::int64_t repeat = 1;
  int threads = 0;
  double tolerance = 1e-5;
  bool check_only = false;
  bool json = false;
  bool help = false;
};

constexpr const char* kHelp =
    R"(usage: run MODEL [OPTION]...

Loads a model, runs it, says how long that took, and compares what it returns.

Inputs, in the order of the method's parameters:
  --shape 1,3,224,224   a tensor of numbers that are the same everywhere (below);
                        "--shape scalar" has no dimension
  --input FILE.npy      a tensor that NumPy wrote
  --input FILE          raw little-endian numbers, of the --shape before it
  --value V             an integer, a float, true, false, none, or other text
  --dtype NAME          of the shapes after it: float (the default), double, half,
                        bfloat16, long, int, short, char, byte, bool
  --below N             integers made for a shape are less than N (10)

What to do:
  --method NAME         which method (forward)
  --repeat N            run N times; says the first and the median (1)
  --threads N           of PyTorch's pool
  --output FILE.npy     write what it returns: FILE.0.npy, FILE.1.npy, ...
  --expect FILE.npy     compare; once for each tensor or number returned, in order
  --tolerance T         largest difference, as a part of the largest value expected
                        (1e-5); integers and booleans must be equal
  --operators FILE      write the operators that were dispatched, one a line, for
                        opsieve build --policy traced --ops-from FILE
  --check-only          load the model and name every operator it lacks; do not run
  --json                say it as JSON

Numbers of a shape: s = index of the input (from 0); for each element, modulo 2^64,
  s = s * 6364136223846793005 + 1442695040888963407
  floating: (s >> 40) / 2^24    integer: (s >> 33) % N    bool: s >> 63

Ends with 0 if all is well, 1 if the model cannot be loaded or run or differs,
2 if the command line is wrong.
)";

namespace detail {

inline std::int64_t integer(const std::string& option, const std::string& text, std::int64_t least) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (errno != 0 || end == text.c_str() || *end != '\0' || value < least) {
    throw Usage(option + " wants an integer of " + std::to_string(least) + " or more, not '" + text + "'");
  }
  return value;
}

inline std::vector<std::int64_t> shape(const std::string& text) {
  std::vector<std::int64_t> sizes;
  if (text == "scalar") {
    return sizes;
  }
  std::size_t start = 0;
  while (true) {
    const std::size_t comma = text.find(',', start);
    sizes.push_back(integer("--shape", text.substr(start, comma - start), 0));
    if (comma == std::string::npos) {
      return sizes;
    }
    start = comma + 1;
  }
}

inline bool is_npy(const std::string& name) {
  return name.size() > 4 && name.compare(name.size() - 4, 4, ".npy") == 0;
}

} // namespace detail

// Reads the options one after the other.
class Parser {
 public:
  Parser(int count, char** words) : words_(words + 1, words + count) {}

  Options parse() {
    while (position_ < words_.size()) {
      const std::string word = words_[position_++];
      if (word.size() > 1 && word[0] == '-') {
        option(word);
      } else if (options_.model.empty()) {
        options_.model = word;
      } else {
        throw Usage("one MODEL, not two: '" + options_.model + "' and '" + word + "'");
      }
    }
    if (options_.model.empty() && !options_.help) {
      throw Usage("name a MODEL");
    }
    return options_;
  }

 private:
  void option(const std::string& word) {
    if (word == "--help" || word == "-h") {
      options_.help = true;
    } else if (word == "--json") {
      options_.json = true;
    } else if (word == "--check-only") {
      options_.check_only = true;
    } else {
      option_with_value(word);
    }
  }

  void option_with_value(const std::string& whole) {
    const std::size_t equals = whole.find('=');
    const std::string name = whole.substr(0, equals);
    static const char* const known[] = {"--shape", "--dtype", "--input", "--value", "--expect", "--method", "--repeat",
                                        "--threads", "--tolerance", "--output", "--below", "--operators"};
    bool is_known = false;
    for (const char* candidate : known) {
      is_known = is_known || name == candidate;
    }
    if (!is_known) {
      throw Usage("there is no option '" + name + "'");
    }
    if (equals == std::string::npos && position_ == words_.size()) {
      throw Usage(name + " wants a value");
    }
    apply(name, equals == std::string::npos ? words_[position_++] : whole.substr(equals + 1));
  }

  void apply(const std::string& name, const std::string& value) {
    if (name == "--shape") {
      InputOption input;
      input.shape = detail::shape(value);
      input.has_shape = true;
      input.dtype = dtype_;
      options_.inputs.push_back(input);
    } else if (name == "--dtype") {
      dtype_ = value;
    } else if (name == "--input") {
      file(value);
    } else if (name == "--value") {
      InputOption input;
      input.kind = InputOption::kValue;
      input.text = value;
      options_.inputs.push_back(input);
    } else if (name == "--expect") {
      options_.expected.push_back(value);
    } else if (name == "--method") {
      options_.method = value;
    } else if (name == "--repeat") {
      options_.repeat = detail::integer(name, value, 1);
    } else if (name == "--below") {
      options_.below = detail::integer(name, value, 1);
    } else if (name == "--threads") {
      options_.threads = static_cast<int>(std::min<std::int64_t>(detail::integer(name, value, 1), 4096));
    } else if (name == "--output") {
      options_.output = value;
    } else if (name == "--operators") {
      options_.operators = value;
    } else {
      tolerance(value);
    }
  }

  void file(const std::string& name) {
    const bool raw = !detail::is_npy(name);
    if (raw && (options_.inputs.empty() || options_.inputs.back().kind != InputOption::kShape)) {
      throw Usage("'" + name + "' is no .npy file: give its --shape (and --dtype) before it");
    }
    if (!raw) {
      options_.inputs.emplace_back();
    }
    options_.inputs.back().kind = InputOption::kFile;
    options_.inputs.back().text = name;
  }

  void tolerance(const std::string& text) {
    char* end = nullptr;
    options_.tolerance = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || *end != '\0' || !(options_.tolerance >= 0) || std::isinf(options_.tolerance)) {
      throw Usage("--tolerance wants a number of 0 or more, not '" + text + "'");
    }
  }

  std::vector<std::string> words_;
  std::size_t position_ = 0;
  std::string dtype_ = "float";
  Options options_;
};

} // namespace run
} // namespace opsieve

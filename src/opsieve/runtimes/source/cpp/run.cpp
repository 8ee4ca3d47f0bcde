// Loads a model, runs it, times it, and compares what it returns with what is expected.
#include <opsieve/explain.h>
#include <opsieve/run/compare.h>
#include <opsieve/run/model.h>
#include <opsieve/run/recorded.h>
#include <opsieve/run/report.h>
#include <opsieve/run/values.h>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace opsieve {
namespace run {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Model load_or_name_missing(const Options& options) {
  detail::open_file(options.model, "rb");
  try {
    return load(options.model);
  } catch (const std::exception&) {
    std::set<std::string> missing;
    try {
      missing = missing_operators(options.model);
    } catch (const std::exception&) {
      // The first of the two says more.
    }
    if (missing.empty()) {
      throw;
    }
    throw MissingOperators{missing};
  }
}

std::string numbered(const std::string& file, std::size_t number) {
  const std::string stem = detail::is_npy(file) ? file.substr(0, file.size() - 4) : file;
  return stem + "." + std::to_string(number) + ".npy";
}

void compare_all(const Options& options, Report& report) {
  if (options.expected.size() > report.outputs.size()) {
    throw std::runtime_error("the model returns " + std::to_string(report.outputs.size()) + " tensors or numbers, but " +
                             std::to_string(options.expected.size()) + " were expected");
  }
  for (std::size_t place = 0; place < options.expected.size(); ++place) {
    report.differences.push_back(compare(report.outputs[place], read_npy(options.expected[place])));
  }
}

std::vector<c10::IValue> arguments(const Options& options) {
  std::vector<c10::IValue> inputs;
  for (const InputOption& input : options.inputs) {
    inputs.push_back(argument(input, inputs.size(), options.below));
  }
  return inputs;
}

void run_model(const Options& options, Model& model, const std::vector<c10::IValue>& inputs, Report& report) {
  for (std::int64_t time = 0; time < options.repeat; ++time) {
    const auto start = std::chrono::steady_clock::now();
    const c10::IValue result = call(model, options.method, inputs);
    report.forward.push_back(milliseconds_since(start));
    if (time == 0) {
      flatten(result, report.outputs);
    }
  }
  for (std::size_t place = 0; !options.output.empty() && place < report.outputs.size(); ++place) {
    write_npy(numbered(options.output, place), report.outputs[place]);
  }
  compare_all(options, report);
}

Report perform(const Options& options) {
  c10::InferenceMode guard;
  if (options.threads != 0) {
    at::set_num_threads(options.threads);
  }
  const std::vector<c10::IValue> inputs = arguments(options);
  if (!options.operators.empty()) {
    Recorded::start();  // loading dispatches operators too
  }
  Report report;
  const auto start = std::chrono::steady_clock::now();
  Model model = load_or_name_missing(options);
  report.load = milliseconds_since(start);
  report.methods = methods(model);
  if (!options.check_only) {
    run_model(options, model, inputs, report);
    if (!options.operators.empty()) {
      Recorded::write(options.operators);
    }
  }
  return report;
}

int fail(const Options& options, const std::string& problem, const std::set<std::string>& missing) {
  if (options.json) {
    print_json_error(problem, missing);
  }
  std::fprintf(stderr, "error: %s\n", problem.c_str());
  return 1;
}

int main_with(const Options& options) {
  if (options.help) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  try {
    const Report report = perform(options);
    options.json ? print_json(options, report) : print_text(options, report);
    return report.is_fine(options.tolerance) ? 0 : 1;
  } catch (const MissingOperators& missing) {
    return fail(options, explained(missing.message()), missing.names);
  } catch (const Usage&) {
    throw;
  } catch (const std::exception& error) {
    return fail(options, with_format_hint(explain(error)), {});
  }
}

} // namespace
} // namespace run
} // namespace opsieve

int main(int count, char** words) {
  try {
    return opsieve::run::main_with(opsieve::run::Parser(count, words).parse());
  } catch (const opsieve::run::Usage& error) {
    std::fprintf(stderr, "error: %s\ntry: %s --help\n", error.what(), words[0]);
    return 2;
  }
}

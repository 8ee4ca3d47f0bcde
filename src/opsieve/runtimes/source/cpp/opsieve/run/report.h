// What the runner found, as text and as JSON.
#pragma once

#include <opsieve/run/compare.h>
#include <opsieve/run/options.h>

#include <algorithm>
#include <set>

namespace opsieve {
namespace run {

struct MissingOperators {
  std::set<std::string> names;

  // In PyTorch's own words.
  std::string message() const {
    std::string text;
    for (const std::string& name : names) {
      text += (text.empty() ? "" : ", ") + name;
    }
    return "Following ops cannot be found: [" + text + "].";
  }
};

struct Report {
  double load = 0; // milliseconds, as all times
  std::vector<double> forward;
  std::vector<std::string> methods;
  std::vector<Array> outputs;
  std::vector<Difference> differences;

  double median() const {
    std::vector<double> sorted = forward;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }

  bool is_fine(double tolerance) const {
    return std::all_of(differences.begin(), differences.end(),
                       [&](const Difference& difference) { return difference.is_within(tolerance); });
  }
};

inline void print_text(const Options& options, const Report& report) {
  std::printf("load           %10.2f ms\n", report.load);
  if (options.check_only) {
    std::puts("methods");
    for (const std::string& method : report.methods) {
      std::printf("  %s\n", method.c_str());
    }
    std::puts("every operator it calls is here");
    return;
  }
  std::printf("first %-8.40s %10.2f ms\n", options.method.c_str(), report.forward.front());
  if (report.forward.size() > 1) {
    std::printf("median of %-4zu %10.2f ms\n", report.forward.size(), report.median());
  }
  for (std::size_t place = 0; place < report.outputs.size(); ++place) {
    const Array& output = report.outputs[place];
    std::printf("output %-7zu %10s %s\n", place, c10::toString(output.dtype), detail::shape_text(output.shape).c_str());
    if (place >= report.differences.size()) {
      continue;
    }
    const Difference& difference = report.differences[place];
    const char* verdict = difference.is_within(options.tolerance) ? "same" : "DIFFERENT";
    if (difference.problem.empty()) {
      std::printf("  %s: largest difference %.3g, relative %.3g\n", verdict, difference.absolute, difference.relative);
    } else {
      std::printf("  %s: %s\n", verdict, difference.problem.c_str());
    }
  }
}

namespace detail {

inline std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      result += '\\';
      result += character;
    } else if (code < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", code);
      result += escape;
    } else {
      result += character;
    }
  }
  return result + '"';
}

// JSON has no infinity.
inline std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return std::isfinite(value) ? text : "null";
}

template <class Container, class Function>
std::string list(const Container& values, Function one) {
  std::string text;
  for (const auto& value : values) {
    text += (text.empty() ? "" : ", ") + one(value);
  }
  return "[" + text + "]";
}

inline std::string output_json(const Options& options, const Report& report, std::size_t place) {
  const Array& output = report.outputs[place];
  std::string text = "{\"dtype\": " + quoted(find_dtype(output.dtype)->name) + ", \"shape\": " +
      list(output.shape, [](std::int64_t size) { return std::to_string(size); });
  if (place < report.differences.size()) {
    const Difference& difference = report.differences[place];
    const bool same = difference.is_within(options.tolerance);
    text += std::string(", \"same\": ") + (same ? "true" : "false") + ", \"absolute\": " + number(difference.absolute) +
        ", \"relative\": " + number(difference.relative) +
        ", \"problem\": " + (difference.problem.empty() ? "null" : quoted(difference.problem));
  }
  return text + "}";
}

} // namespace detail

inline void print_json(const Options& options, const Report& report) {
  std::vector<std::size_t> places(report.outputs.size());
  for (std::size_t place = 0; place < places.size(); ++place) {
    places[place] = place;
  }
  const std::string outputs =
      detail::list(places, [&](std::size_t place) { return detail::output_json(options, report, place); });
  std::printf("{\"model\": %s, \"method\": %s, \"load_ms\": %s, \"forward_ms\": %s, \"median_ms\": %s,\n",
              detail::quoted(options.model).c_str(), detail::quoted(options.method).c_str(),
              detail::number(report.load).c_str(), detail::list(report.forward, detail::number).c_str(),
              report.forward.empty() ? "null" : detail::number(report.median()).c_str());
  std::printf(" \"methods\": %s,\n \"outputs\": %s,\n \"fine\": %s}\n",
              detail::list(report.methods, detail::quoted).c_str(), outputs.c_str(),
              report.is_fine(options.tolerance) ? "true" : "false");
}

inline void print_json_error(const std::string& problem, const std::set<std::string>& missing) {
  std::printf("{\"error\": %s,\n \"missing_operators\": %s,\n \"fine\": false}\n", detail::quoted(problem).c_str(),
              detail::list(missing, detail::quoted).c_str());
}

} // namespace run
} // namespace opsieve

// Walks the table of registrations when the program starts.
#include <opsieve/dispatch.h>
#include <opsieve/registration.h>

#include <cstring>
#include <vector>

extern "C" {
#ifdef OPSIEVE_LISTED
// For linkers that would keep the whole table: see link/listed.py.
extern const opsieve::Registration* const* const opsieve_listed[];
extern const std::size_t opsieve_listed_count;
#else
// With -z start-stop-gc (lld's default) these two keep no entry alive.
extern const opsieve::Registration* const __start_opsieve_registrations[] __attribute__((visibility("hidden")));
extern const opsieve::Registration* const __stop_opsieve_registrations[] __attribute__((visibility("hidden")));
#endif
}

namespace opsieve {
namespace {

struct Known {
  const char* name_space;
  std::int32_t key;
  torch::Library* library;
};

std::vector<Known>& known_libraries() {
  static auto* const known = new std::vector<Known>();
  return *known;
}

} // namespace

torch::Library& library(const Registration& registration) {
  for (const Known& known : known_libraries()) {
    if (known.key == registration.key && std::strcmp(known.name_space, registration.name_space) == 0) {
      return *known.library;
    }
  }
  const bool is_schema = registration.key == kSchema;
  // A fragment: a namespace's one TORCH_LIBRARY block may stay as it is, beside these.
  auto* made = is_schema
      ? new torch::Library(torch::Library::FRAGMENT, registration.name_space, {}, __FILE__, __LINE__)
      : new torch::Library(
            torch::Library::IMPL,
            registration.name_space,
            static_cast<c10::DispatchKey>(registration.key),
            __FILE__,
            __LINE__);
  known_libraries().push_back({registration.name_space, registration.key, made});
  return *made;
}

void apply_schema(const Registration& registration) {
  const std::vector<at::Tag> tags(registration.tags, registration.tags + registration.tag_count);
  library(registration).def(registration.text, tags);
}

void apply_statement(const Registration& registration) {
  reinterpret_cast<void (*)(torch::Library&)>(registration.function)(library(registration));
}

void apply_call(const Registration& registration) {
  registration.function();
}

namespace {

#ifdef OPSIEVE_LISTED

int apply_all() {
  for (std::size_t place = 0; place < opsieve_listed_count; ++place) {
    (*opsieve_listed[place])->apply(**opsieve_listed[place]);
  }
  return 0;
}

#else

// The first entry of the table does nothing. A program may register nothing else; and GNU ld, given code by clang, keeps
// the first entry it meets whatever refers to it, which is this one if this object is linked first.
OPSIEVE_CALL(0, "opsieve_first_entry", );

int apply_all() {
  OPSIEVE_NEEDS("opsieve_first_entry");
  for (auto entry = __start_opsieve_registrations; entry != __stop_opsieve_registrations; ++entry) {
    (*entry)->apply(**entry);
  }
  return 0;
}

#endif

[[maybe_unused]] const int applied = apply_all();

} // namespace
} // namespace opsieve

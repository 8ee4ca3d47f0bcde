#include "sample.h"

#include <pthread.h>

#include <stdexcept>

// Spread the functions over many pages, as in a real library.
#define FILL(bytes) __asm__ volatile(".fill " #bytes ", 1, 0x90")
#define APART __attribute__((noinline, noclone))

bool destructor_ran = false;

namespace {

// ---- constants ----
template <int seed>
struct Table {
  double value[1500];
  constexpr Table() : value() {
    for (int i = 0; i < 1500; i++) value[i] = seed + i * 0.25;
  }
};
constexpr Table<1> first_constants;
constexpr Table<1000> second_constants;
constexpr Table<7> constants_of_removed;

// The compiler must not know which constant it is about to read.
const double* seen(const double* table) {
  __asm__ volatile("" : "+r"(table));
  return table;
}

// ---- constructors ----
struct Registrar {
  std::string text;
  explicit Registrar(const char* name) : text(std::string("registered ") + name) { FILL(700); }
  ~Registrar() { destructor_ran = true; }
};
Registrar registrar("sample");
int by_attribute = 0;
__attribute__((constructor)) void set_by_attribute() { by_attribute = 41; }

// ---- thread locals ----
int next_id() {
  static int id = 100;
  return id++;
}
thread_local int counter = next_id();
thread_local std::string name_of_thread = "fresh";

// ---- removed functions of this file ----
APART int removed_local(int x) {
  FILL(5000);
  if (x == 12345) throw std::logic_error("never");
  return x + 1;
}
APART int removed_by_address(int x) {
  FILL(5000);
  return x + 2;
}
APART int removed_in_table(int x) {
  FILL(5000);
  return x + 3;
}
APART double removed_reader(int which) {
  FILL(3000);
  return seen(constants_of_removed.value)[which];
}

APART int kept_in_table(int x) {
  FILL(900);
  return x * 2;
}
APART int kept_throws_in_table(int x) {
  FILL(900);
  if (x > 5) throw x;
  return x * 3;
}

using Function = int (*)(int);
const Function functions[] = {kept_in_table, removed_in_table, kept_throws_in_table};
const Function volatile* const functions_seen = functions;

struct CleanUp {
  std::string& log;
  ~CleanUp() { log += "cleaned "; }
};

struct Custom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

APART void throws(int how, std::string& log) {
  FILL(2000);
  CleanUp cleanup{log};
  switch (how) {
    case 0: throw Custom("custom");
    case 1: throw std::out_of_range("range");
    case 2: throw 17;
    case 3: throw "text";
    case 4: std::string().at(3); break;
    case 5: throw std::string("a string object");
    default: log += "nothing ";
  }
}

APART void only_int_or_custom(int how, std::string& log) {
  FILL(1500);
  try {
    throws(how, log);
  } catch (const Custom& e) {
    log += std::string("inner ") + e.what() + " ";
    throw;
  } catch (int) {
    log += "inner int ";
    throw std::invalid_argument("from int");
  }
}

}  // namespace

Shape::~Shape() = default;
std::string Shape::kept_name() const { return "shape"; }
int Shape::removed_area() const {
  FILL(4500);
  return 6;
}

APART Shape* kept_shape() {
  static Shape shape;
  return &shape;
}

std::string kept_catches(int how) {
  FILL(1000);
  std::string log;
  try {
    CleanUp cleanup{log};
    only_int_or_custom(how, log);
  } catch (const std::logic_error& e) {
    log += std::string("logic ") + e.what();
  } catch (const std::exception& e) {
    log += std::string("exception ") + e.what();
  } catch (const char* text) {
    log += std::string("text ") + text;
  } catch (...) {
    log += "anything";
  }
  return log;
}

int kept_switch(int which) {
  FILL(800);
  switch (which) {
    case 0: return 11;
    case 1: return removed_local(0) * 100;
    case 2: return 33 + by_attribute;
    case 3: return next_id() > 0;
    case 4: return -5;
    case 5: return counter > 0;
    case 6: return 78;
    case 7: return int(registrar.text.size());
    default: return 1000;
  }
}

double kept_constants(int which) {
  FILL(600);
  return seen(first_constants.value)[which] + seen(second_constants.value)[1499 - which];
}

static void* other_thread(void* out) {
  *static_cast<std::string*>(out) = name_of_thread + std::to_string(counter > 0);
  return nullptr;
}

std::string kept_thread_locals() {
  name_of_thread = "main";
  std::string other;
  pthread_t thread;
  pthread_create(&thread, nullptr, other_thread, &other);
  pthread_join(thread, nullptr);
  return name_of_thread + std::to_string(counter > 0) + other;
}

std::string kept_constructed() { return registrar.text + std::to_string(by_attribute); }

std::vector<int> kept_through_table(int x) { return {functions_seen[0](x), functions_seen[2](x)}; }

int kept_calls_removed_local(int x) {
  FILL(300);
  return removed_local(x) + 1;
}
int kept_calls_removed_exported(int x) {
  FILL(300);
  return removed_exported(x) + 1;
}
int kept_takes_address(int x) {
  Function function = removed_by_address;
  __asm__ volatile("" : "+r"(function));
  return function(x) + 1;
}
int kept_calls_from_table(int x) { return functions_seen[1](x) + 1; }
int kept_jumps_to_removed(int x) { return removed_exported(x); }
int kept_through_unknown(long distance, int x) {
  auto function = reinterpret_cast<Function>(reinterpret_cast<char*>(&kept_through_unknown) + distance);
  return function(x) + 1;
}
double kept_reads_removed_constant(int which) { return removed_reader(which); }

int removed_exported(int x) {
  FILL(6000);
  return x + 10;
}
int removed_unlisted(int x) {
  FILL(9000);
  return x + 20;
}

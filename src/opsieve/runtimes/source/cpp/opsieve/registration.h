// Registrations as a table of data. Each entry lies in an input section of its own; the linker's section garbage
// collection keeps it exactly when something live refers to its symbol. An operator's schema is referred to by whatever
// can dispatch the operator, and refers to its kernels in turn. See docs/source-runtime.md.
#pragma once

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include <cstddef>
#include <cstdint>

namespace opsieve {

struct Registration;

using Function = void (*)();

struct Registration {
  void (*apply)(const Registration&);
  const char* name_space;
  const char* text; // the operator's name, or its schema
  Function function;
  const at::Tag* tags;
  std::int32_t key; // c10::DispatchKey, or kSchema
  std::uint32_t tag_count;
};

constexpr std::int32_t kSchema = -1;

// The library object to register with; made on first use, never destroyed.
torch::Library& library(const Registration& registration);

// A function pointer rather than a template argument: the code that boxes arguments is then shared by all kernels of
// one signature.
template <class F>
void apply_kernel(const Registration& registration) {
  library(registration).impl(registration.text, reinterpret_cast<F*>(registration.function));
}

void apply_schema(const Registration& registration);
void apply_statement(const Registration& registration);
void apply_call(const Registration& registration);

} // namespace opsieve

#if __SIZEOF_POINTER__ == 8
#define OPSIEVE_ADDRESS ".quad "
#else
#define OPSIEVE_ADDRESS ".long "
#endif

// A relocation that does nothing, and so costs nothing, but makes what it stands in depend on `symbol`.
#define OPSIEVE_RELOCATION(symbol) ".reloc ., BFD_RELOC_NONE, " symbol "\n"

// Weak, so that a link can put something else in an entry's place: the entry itself then goes, as nothing refers to it.
// `id` is unique within the file, and names the section (GNU as and LLVM both know `unique`). `needs` is a sequence of
// OPSIEVE_RELOCATION.
#define OPSIEVE_ENTRY(id, symbol, needs)                                                        \
  asm(".pushsection opsieve_registrations,\"aw\",%progbits,unique," #id "\n"                    \
      ".balign " OPSIEVE_STRINGIZE(__SIZEOF_POINTER__) "\n"                                     \
      ".weak " symbol "\n.hidden " symbol "\n.type " symbol ", %object\n" symbol ":\n"         \
      needs OPSIEVE_ADDRESS "opsieve_registration_" #id "\n"                                    \
      ".size " symbol ", " OPSIEVE_STRINGIZE(__SIZEOF_POINTER__) "\n.popsection\n")
#define OPSIEVE_STRINGIZE(x) OPSIEVE_STRINGIZE_(x)
#define OPSIEVE_STRINGIZE_(x) #x

#define OPSIEVE_REGISTRATION(id)                                                                \
  static const ::opsieve::Registration opsieve_registration_##id                                \
      asm("opsieve_registration_" #id) __attribute__((used))

#define OPSIEVE_KERNEL(id, symbol, name_space, dispatch_key, text, ...)                         \
  OPSIEVE_REGISTRATION(id) = {&::opsieve::apply_kernel<std::remove_pointer_t<                   \
          std::decay_t<decltype(__VA_ARGS__)>>>, name_space, text,                              \
      reinterpret_cast<::opsieve::Function>(__VA_ARGS__), nullptr,                              \
      static_cast<std::int32_t>(c10::DispatchKey::dispatch_key), 0};                            \
  OPSIEVE_ENTRY(id, symbol, "")

#define OPSIEVE_SCHEMA(id, symbol, name_space, text, needs)                                     \
  OPSIEVE_REGISTRATION(id) = {&::opsieve::apply_schema, name_space, text, nullptr, nullptr,     \
      ::opsieve::kSchema, 0};                                                                   \
  OPSIEVE_ENTRY(id, symbol, needs)

#define OPSIEVE_TAGGED_SCHEMA(id, symbol, name_space, text, needs, ...)                         \
  static constexpr at::Tag opsieve_tags_##id[] = __VA_ARGS__;                                   \
  OPSIEVE_REGISTRATION(id) = {&::opsieve::apply_schema, name_space, text, nullptr,              \
      opsieve_tags_##id, ::opsieve::kSchema, sizeof(opsieve_tags_##id) / sizeof(at::Tag)};      \
  OPSIEVE_ENTRY(id, symbol, needs)

// Any statement that registers with a library called m.
#define OPSIEVE_STATEMENT(id, symbol, name_space, dispatch_key, needs, ...)                     \
  static void opsieve_statement_##id(torch::Library& m) { __VA_ARGS__; }                        \
  OPSIEVE_REGISTRATION(id) = {&::opsieve::apply_statement, name_space, symbol,                  \
      reinterpret_cast<::opsieve::Function>(&opsieve_statement_##id), nullptr,                  \
      static_cast<std::int32_t>(dispatch_key), 0};                                              \
  OPSIEVE_ENTRY(id, symbol, needs)

// Any statement.
#define OPSIEVE_CALL(id, symbol, ...)                                                           \
  static void opsieve_call_##id() { __VA_ARGS__ }                                               \
  OPSIEVE_REGISTRATION(id) = {&::opsieve::apply_call, nullptr, symbol, &opsieve_call_##id,      \
      nullptr, ::opsieve::kSchema, 0};                                                          \
  OPSIEVE_ENTRY(id, symbol, "")

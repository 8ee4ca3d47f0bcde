// The framework itself: all of it is called, none of it knows an operator.
#include "torch.h"

namespace c10 {
int calls;
Dispatcher& Dispatcher::singleton() { static Dispatcher only; return only; }
NOINLINE OperatorHandle Dispatcher::findSchemaOrThrow(const char* name, const char* overload) {
  ++calls;
  return {const_cast<char*>(name + (overload == nullptr))};
}
}  // namespace c10

namespace c10 {
NOINLINE void fallthrough_kernel(Stack*) { ++calls; }
}  // namespace c10

namespace torch {
NOINLINE CppFunction::~CppFunction() { delete functor; }
NOINLINE c10::FunctionSchema schema(const char* text) { ++c10::calls; return {text}; }
Library::Library(int, const char*, const char*, unsigned) { ++c10::calls; }
NOINLINE Library& Library::_def(c10::FunctionSchema&&) & { ++c10::calls; return *this; }
NOINLINE Library& Library::_def(const char*, CppFunction&&) & { ++c10::calls; return *this; }
NOINLINE Library& Library::_impl(const char*, CppFunction&&, _RegisterOrVerify) & { ++c10::calls; return *this; }
NOINLINE Library& Library::_fallback(CppFunction&&) & { ++c10::calls; return *this; }
namespace detail {
NOINLINE TorchLibraryInit::TorchLibraryInit(void (*function)(Library&), const char* ns, const char* file, unsigned line)
    : library(0, ns, file, line) { function(library); }
}  // namespace detail
}  // namespace torch

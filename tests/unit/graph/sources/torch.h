// As much of PyTorch's headers as makes the compiler write the same symbols and the same shapes of code. Names and
// signatures follow torch/library.h, ATen/core/dispatch/Dispatcher.h, ATen/core/boxing and what torchgen writes.
#pragma once
#include <vector>

#define NOINLINE __attribute__((noinline))

namespace c10 {
enum class DispatchKey { CPU, QuantizedCPU, SparseCPU, MkldnnCPU, Autograd, CompositeImplicitAutograd, Conjugate };
struct FunctionSchema { const char* text; };
struct OperatorHandle { void* entry; };
struct Stack;
struct OperatorKernel {
  virtual ~OperatorKernel() = default;
};
void fallthrough_kernel(Stack*);

class Dispatcher {
 public:
  static Dispatcher& singleton();
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload);
};

namespace impl {
using Boxed = void(Stack*);
using Unboxed = int(int);

template <Unboxed* kernel>
struct make_boxed_from_unboxed_functor {
  static NOINLINE void call(Stack* stack) { asm volatile("" : : "r"(stack), "r"(kernel(1))); }
};

template <Unboxed* kernel>
struct wrap_kernel_functor_unboxed_ {
  static NOINLINE int call(int x) { asm volatile(""); return kernel(x) + 1; }
};
template <Unboxed* kernel>
struct WrapFunctionIntoFunctor_ : OperatorKernel {
  int calls = 0;
};
}  // namespace impl

struct BoxedKernel {
  template <impl::Boxed* kernel>
  static NOINLINE void make_boxed_function(Stack* stack) { asm volatile(""); kernel(stack); }
};
}  // namespace c10

namespace torch {
enum class _RegisterOrVerify { REGISTER, VERIFY };

class CppFunction {
 public:
  CppFunction(c10::OperatorKernel* functor, void* boxed, void* unboxed) : functor(functor), boxed(boxed), unboxed(unboxed) {}
  ~CppFunction();

  template <c10::impl::Unboxed* kernel>
  static CppFunction of() {
    return {new c10::impl::WrapFunctionIntoFunctor_<kernel>,
            reinterpret_cast<void*>(&c10::impl::make_boxed_from_unboxed_functor<kernel>::call),
            reinterpret_cast<void*>(&c10::impl::wrap_kernel_functor_unboxed_<kernel>::call)};
  }

  // Seldom inlined, so that initialisers call it.
  template <c10::impl::Boxed* kernel>
  static NOINLINE CppFunction makeFromBoxedFunction() {
    return {nullptr, reinterpret_cast<void*>(&c10::BoxedKernel::make_boxed_function<kernel>), nullptr};
  }
  static CppFunction makeFallthrough() {
    return {nullptr, reinterpret_cast<void*>(&c10::fallthrough_kernel), nullptr};
  }

 private:
  c10::OperatorKernel* functor;
  void* boxed;
  void* unboxed;
};

c10::FunctionSchema schema(const char* text);

class Library {
 public:
  Library(int kind, const char* ns, const char* file, unsigned line);

  Library& def(const char* text) & { return _def(schema(text)); }
  Library& def_with(const char* text, CppFunction&& function) & { return _def(text, static_cast<CppFunction&&>(function)); }
  Library& impl(const char* name, CppFunction&& function) & { return _impl(name, static_cast<CppFunction&&>(function), {}); }
  Library& fallback(CppFunction&& function) & { return _fallback(static_cast<CppFunction&&>(function)); }

  // An instance that was not inlined: it names the wrappers itself.
  template <c10::impl::Unboxed* kernel>
  NOINLINE Library& impl(const char* name) & { return _impl(name, CppFunction::of<kernel>(), {}); }

 private:
  Library& _def(c10::FunctionSchema&& schema) &;
  Library& _def(const char* name_or_schema, CppFunction&& function) &;
  Library& _impl(const char* name, CppFunction&& function, _RegisterOrVerify) &;
  Library& _fallback(CppFunction&& function) &;
};

namespace detail {
class TorchLibraryInit {
 public:
  // Out of line: each initialiser stays a function of its own.
  TorchLibraryInit(void (*function)(Library&), const char* ns, const char* file, unsigned line);
  // Inlined: so are the initialisers, into the function that constructs the file's static objects.
  TorchLibraryInit(int, void (*function)(Library&), const char* ns, const char* file, unsigned line)
      : library(1, ns, file, line) { function(library); }

 private:
  Library library;
};
}  // namespace detail
}  // namespace torch

#ifdef INLINED
#define INIT_ARGUMENTS(name, ns) 0, &name, #ns, __FILE__, __LINE__
#else
#define INIT_ARGUMENTS(name, ns) &name, #ns, __FILE__, __LINE__
#endif

#define JOIN(a, b) a##b
#define BLOCK(init, object, ns, m)                                                  \
  static void init(torch::Library&);                                                \
  static const torch::detail::TorchLibraryInit object(INIT_ARGUMENTS(init, ns));    \
  void init(torch::Library& m)
#define TORCH_LIBRARY(ns, m) BLOCK(TORCH_LIBRARY_init_##ns, TORCH_LIBRARY_static_init_##ns, ns, m)
#define TORCH_LIBRARY_FRAGMENT(ns, uid, m) \
  BLOCK(TORCH_LIBRARY_FRAGMENT_init_##ns##_##uid, TORCH_LIBRARY_FRAGMENT_static_init_##ns##_##uid, ns, m)
#define TORCH_LIBRARY_IMPL(ns, k, uid, m) \
  BLOCK(TORCH_LIBRARY_IMPL_init_##ns##_##k##_##uid, TORCH_LIBRARY_IMPL_static_init_##ns##_##k##_##uid, ns, m)

// What torchgen writes for each operator. `call` of HANDLE finds the operator by a function of its own.
#define OPERATOR(op, base, overload_name)                                                          \
  struct op {                                                                                      \
    static int call(int x);                                                                        \
    static int redispatch(int keys, int x);                                                        \
  };                                                                                               \
  static NOINLINE c10::OperatorHandle create_##op##_typed_handle() {                               \
    return c10::Dispatcher::singleton().findSchemaOrThrow(base, overload_name);                    \
  }                                                                                                \
  NOINLINE int op::call(int x) {                                                                   \
    static auto handle = create_##op##_typed_handle();                                             \
    return dispatch(handle, x);                                                                    \
  }                                                                                                \
  NOINLINE int op::redispatch(int keys, int x) {                                                   \
    static auto handle = create_##op##_typed_handle();                                             \
    return dispatch(handle, x + keys);                                                             \
  }

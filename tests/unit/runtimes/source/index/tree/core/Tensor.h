#pragma once
// The shapes of declarations that PyTorch's headers have, in small.
#define TORCH_API __attribute__((visibility("default")))
#define C10_DEFINE_typed_var(type, name, default_value) \
  TORCH_API type FLAGS_##name = default_value;          \
  namespace c10 {                                       \
  namespace {                                           \
  struct FlagParser_##name {                            \
    type* flag = &FLAGS_##name;                         \
  };                                                    \
  FlagParser_##name parser_##name;                      \
  }                                                     \
  }
#define C10_DEFINE_bool(name, default_value) C10_DEFINE_typed_var(bool, name, default_value)
#define C10_DECLARE_bool(name) extern bool FLAGS_##name
#define AT_FORALL_SCALAR_TYPES(_) \
  _(long, Long)                   \
  _(float, Float)
#define AT_PARALLEL_OPENMP 1

extern "C" int mz_crc32(int seed);
C10_DECLARE_bool(keep_on_shrink);

namespace c10 {
template <class T>
struct ArrayRef {
  const T* data;
  long length;
};
using IntArrayRef = ArrayRef<long>;

struct Stream;
struct Scalar {
  double value;
};
enum class DispatchKey : unsigned char { CPU };

struct TORCH_API Allocator {
  virtual ~Allocator() = default;
  virtual void* allocate(long bytes) = 0;
  virtual int device() const { return 0; }
  virtual void release(
      void* memory);
  int inner() {
    return 1;
  }
  struct Pool {
    int size{1};
    virtual void drain();
  };
};
Stream& operator<<(Stream& out, DispatchKey key);
Stream& operator<<(Stream& out, const Scalar& scalar);
extern const int version;
extern thread_local int depth;

template <class T>
struct Factory {
  static T make(int seed);
};
using LongFactory = Factory<long>;
} // namespace c10

namespace at {
using c10::IntArrayRef;
using c10::Scalar;
struct TORCH_API Tensor {
  Tensor();
  explicit Tensor(long size);
  ~Tensor();
  Tensor(const Tensor&);
  template <class T>
  T item() const;
  template <class T>
  static Tensor full(T value);
  explicit operator bool() const;
  static int count;
  long size, stride;
};
c10::Stream& operator<<(c10::Stream& out, const Tensor& tensor);
int get_num_threads();

namespace native {
Tensor view(const Tensor& self, IntArrayRef size);
Tensor view(const Tensor& self, long dtype);
Tensor add(const Tensor& self, const Tensor& other);
Tensor sub(const Tensor& self, const Tensor& other);
Tensor only_in_a_header(const Tensor& self);

template <class F, class T>
struct DispatchStub {
  static F DEFAULT;
};
// As in PyTorch 2.6 ...
#define DECLARE_DISPATCH(fn, name)                                                      \
  struct name##_DECLARE_DISPATCH_type : DispatchStub<fn, name##_DECLARE_DISPATCH_type> { \
    using FnPtr = fn;                                                                   \
    int filler = 0;                                                                     \
  };                                                                                    \
  extern TORCH_API struct name##_DECLARE_DISPATCH_type name
#define DEFINE_DISPATCH(name) struct name##_DECLARE_DISPATCH_type name
#define REGISTER_ARCH_DISPATCH(name, arch, fn)                                                    \
  template <>                                                                                     \
  name##_DECLARE_DISPATCH_type::FnPtr TORCH_API                                                   \
      DispatchStub<name##_DECLARE_DISPATCH_type::FnPtr, struct name##_DECLARE_DISPATCH_type>::arch = fn;
#ifdef __CUDACC__
#define REGISTER_DISPATCH(name, fn) static int name##__register = fn();
#else
#define REGISTER_DISPATCH(name, fn) REGISTER_ARCH_DISPATCH(name, CPU_CAPABILITY, fn)
#endif
// ... and in PyTorch 1.13.
#define DECLARE_OLD_DISPATCH(fn, name)     \
  struct name : DispatchStub<fn, name> {   \
    using FnPtr = fn;                      \
    int filler = 0;                        \
  };                                       \
  extern TORCH_API struct name name
#define DEFINE_OLD_DISPATCH(name) struct name name
#define REGISTER_OLD_DISPATCH(name, fn) \
  template <>                           \
  name::FnPtr TORCH_API DispatchStub<name::FnPtr, struct name>::CPU_CAPABILITY = fn;

using unary_fn = void (*)(Tensor&);
DECLARE_DISPATCH(unary_fn, neg_stub);
DECLARE_DISPATCH(unary_fn, abs_stub);
DECLARE_OLD_DISPATCH(unary_fn, copy_stub);
namespace cpublas {
DECLARE_OLD_DISPATCH(unary_fn, copy_stub);
}

#define TORCH_IMPL_FUNC(name) void structured_##name::impl
struct structured_add_out {
  void impl(const Tensor& self, const Tensor& out);
};
struct structured_mul_out {
  void impl(const Tensor& self, const Tensor& out);
};
} // namespace native

namespace meta {
#define TORCH_META_FUNC2(name, overload) void structured_##name##_##overload::meta
struct structured_add_Tensor {
  void meta(const Tensor& self);
};
} // namespace meta
} // namespace at

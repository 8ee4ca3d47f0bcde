// Records every dispatch, and from inside which other dispatch it was made.
//
// torch.profiler cannot be the judge of a dependency graph: its tree drops children of the same name, eight operators are
// never observed at all, and work on pool threads has no parent. This recorder sees what at::RecordFunction sees, which is
// every Dispatcher::call and callBoxed, and lifts those limits:
//  * the eight unobserved operators (ObservedOperators.cpp: aten::size, aten::is_leaf, ...) are made observed;
//  * nesting is a stack per thread, so nothing depends on time stamps or names;
//  * a thread without a stack of its own works for the thread that started the recording, inside whatever that one is in.
// Redispatch (kernel to next kernel of the same operator) is no dispatch of another operator and is not seen.
//
// Compiled with -fno-access-control, because OperatorEntry::is_observed_ is private.

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace {

struct Operator {
  std::string name;
  std::vector<size_t> layouts;       // arguments that choose a layout
  std::vector<size_t> scalar_types;  // arguments that choose a dtype
};

struct Call {
  const Operator* op;
  uint64_t keys;  // c10::DispatchKeySet of the call, as the dispatcher computes it, plus the layout asked for
  bool grad;      // an input requires grad, in grad mode
};

using CallKey = std::tuple<const Operator*, uint64_t, bool>;

std::mutex mutex;
std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<Operator>> operators;
std::vector<std::unique_ptr<Operator>> retired;  // of schemas whose memory was used again
std::map<std::tuple<CallKey, const Operator*, bool>, uint64_t> edges;
std::map<CallKey, uint64_t> outermost;
std::thread::id owner;
const std::vector<Call>* owner_stack = nullptr;
thread_local std::vector<Call> stack;
at::CallbackHandle handle = 0;
uint64_t failures = 0;  // calls that could not be recorded; torch only prints a warning when a callback throws

std::unique_ptr<Operator> describe(const c10::FunctionSchema& schema) {
  auto op = std::make_unique<Operator>();
  op->name = c10::toString(schema.operator_name());
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    auto type = schema.arguments()[i].real_type();
    if (auto optional = type->cast<c10::OptionalType>()) {
      type = optional->getElementType();
    }
    if (type->kind() == c10::TypeKind::LayoutType) {
      op->layouts.push_back(i);
    } else if (type->kind() == c10::TypeKind::ScalarTypeType) {
      op->scalar_types.push_back(i);
    }
  }
  return op;
}

const Operator* operator_of(const c10::FunctionSchema& schema) {
  auto& slot = operators[&schema];
  if (slot && slot->name != c10::toString(schema.operator_name())) {
    retired.push_back(std::move(slot));
  }
  if (!slot) {
    slot = describe(schema);
  }
  return slot.get();
}

struct Inputs {
  c10::DispatchKeySet keys;
  bool requires_grad = false;

  void add(const at::Tensor& tensor) {
    if (tensor.defined()) {
      keys = keys | tensor.unsafeGetTensorImpl()->key_set();
      requires_grad = requires_grad || tensor.requires_grad();
    }
  }

  void add(const c10::IValue& value) {
    if (value.isTensor()) {
      add(value.toTensor());
    } else if (value.isList()) {
      for (const c10::IValue& item : value.toListRef()) {
        add(item);
      }
    }
  }
};

// What the factory functions ask for decides the kernel too (BackendSelect computes the key from it).
c10::DispatchKeySet asked_for(const Operator& op, c10::ArrayRef<const c10::IValue> inputs) {
  c10::DispatchKeySet keys;
  for (size_t i : op.layouts) {
    if (i < inputs.size() && inputs[i].isInt()) {
      switch (static_cast<c10::Layout>(inputs[i].toInt())) {
        case c10::Layout::Sparse: keys = keys.add(c10::DispatchKey::SparseCPU); break;
        case c10::Layout::SparseCsr:
        case c10::Layout::SparseCsc:
        case c10::Layout::SparseBsr:
        case c10::Layout::SparseBsc: keys = keys.add(c10::DispatchKey::SparseCsrCPU); break;
        case c10::Layout::Mkldnn: keys = keys.add(c10::DispatchKey::MkldnnCPU); break;
        case c10::Layout::Jagged: keys = keys.add(c10::DispatchKey::NestedTensorCPU); break;
        default: break;
      }
    }
  }
  for (size_t i : op.scalar_types) {
    if (i < inputs.size() && inputs[i].isInt() &&
        c10::isQIntType(static_cast<c10::ScalarType>(inputs[i].toInt()))) {
      keys = keys.add(c10::DispatchKey::QuantizedCPU);
    }
  }
  return keys;
}

Call describe_call(const at::RecordFunction& function, const c10::FunctionSchema& schema) {
  const Operator* op = operator_of(schema);
  // Dispatcher::callBoxed hands over the whole stack: the arguments are at its end.
  auto inputs = function.inputs();
  size_t count = schema.arguments().size();
  if (inputs.size() > count) {
    inputs = inputs.slice(inputs.size() - count);
  }
  Inputs seen;
  for (const c10::IValue& value : inputs) {
    seen.add(value);
  }
  auto local = c10::impl::tls_local_dispatch_key_set();
  auto keys = ((seen.keys | local.included_) - local.excluded_) | asked_for(*op, inputs);
  return {op, keys.raw_repr(), seen.requires_grad && at::GradMode::is_enabled()};
}

CallKey key_of(const Call& call) {
  return {call.op, call.keys, call.grad};
}

void record(const at::RecordFunction& function, const c10::FunctionSchema& schema) {
  Call call = describe_call(function, schema);
  bool adopted = stack.empty() && std::this_thread::get_id() != owner;
  const auto& parents = adopted ? *owner_stack : stack;
  if (parents.empty()) {
    ++outermost[key_of(call)];
  } else {
    ++edges[{key_of(parents.back()), call.op, adopted}];
  }
  stack.push_back(call);
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  const auto* schema = std::get_if<at::RecordFunction::schema_ref_t>(&function.fn_);
  if (schema == nullptr) {  // a user's range, not a dispatch
    return nullptr;
  }
  std::lock_guard<std::mutex> guard(mutex);
  try {
    record(function, schema->get());
  } catch (const std::exception&) {
    ++failures;
    return nullptr;
  }
  return std::make_unique<at::ObserverContext>();
}

void on_end(const at::RecordFunction&, at::ObserverContext* context) {
  if (context != nullptr) {
    std::lock_guard<std::mutex> guard(mutex);
    stack.pop_back();
  }
}

// Tab-separated: the call (operator, grad or -, dispatch keys).
void write_call(FILE* file, const CallKey& call) {
  std::string keys;
  for (c10::DispatchKey key : c10::DispatchKeySet(c10::DispatchKeySet::RAW, std::get<1>(call))) {
    keys += keys.empty() ? "" : ",";
    keys += c10::toString(key);
  }
  std::fprintf(file, "%s\t%s\t%s", std::get<0>(call)->name.c_str(), std::get<2>(call) ? "grad" : "-", keys.c_str());
}

}  // namespace

extern "C" void recorder_start() {
  for (auto& definition : c10::Dispatcher::singleton().operators_) {
    const_cast<bool&>(definition.op.is_observed_) = true;
  }
  owner = std::this_thread::get_id();
  owner_stack = &stack;
  handle = at::addGlobalCallback(
      at::RecordFunctionCallback(on_start, on_end).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

extern "C" void recorder_stop() {
  at::removeCallback(handle);
}

// Appends to the file, and forgets. One line each: `edge`, parent call, child operator, `adopted` or -, count; and
// `top`, call, count. Returns how many calls could not be recorded (0 is right), or -1 when the file cannot be written.
extern "C" long recorder_flush(const char* path) {
  FILE* file = std::fopen(path, "a");
  if (file == nullptr) {
    return -1;
  }
  std::lock_guard<std::mutex> guard(mutex);
  for (const auto& [edge, count] : edges) {
    std::fputs("edge\t", file);
    write_call(file, std::get<0>(edge));
    std::fprintf(file, "\t%s\t%s\t%llu\n", std::get<1>(edge)->name.c_str(), std::get<2>(edge) ? "adopted" : "-",
                 static_cast<unsigned long long>(count));
  }
  for (const auto& [call, count] : outermost) {
    std::fputs("top\t", file);
    write_call(file, call);
    std::fprintf(file, "\t%llu\n", static_cast<unsigned long long>(count));
  }
  edges.clear();
  outermost.clear();
  return std::fclose(file) == 0 ? static_cast<long>(failures) : -1;
}

// Records every dispatch, and from inside which other dispatch it was made.
//
// torch.profiler cannot be the judge of a dependency graph: its tree drops children of the same name, eight operators are
// never observed at all, and work on pool threads has no parent. This recorder sees what at::RecordFunction sees, which is
// every Dispatcher::call and callBoxed, and lifts those limits:
//  * the eight unobserved operators (ObservedOperators.cpp: aten::size, aten::is_leaf, ...) are made observed;
//  * nesting is a stack per thread, so nothing depends on time stamps or names;
//  * a pool thread works for the operator in which the thread that started the recording opened the parallel region.
// Redispatch (kernel to next kernel of the same operator) is no dispatch of another operator and is not seen.
//
// Compiled with -fno-access-control, because OperatorEntry::is_observed_ is private.

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <set>
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
  const Operator* op = nullptr;  // null: nothing that dispatches by name (a node of the autograd graph without a forward)
  uint64_t keys = 0;  // c10::DispatchKeySet of the call, as the dispatcher computes it, plus the layout asked for
  bool grad = false;  // an input requires grad, in grad mode
  bool backward = false;  // not the call of `op`, but the gradient node that it left behind
  std::set<std::string> classes;  // namespaces of custom classes among the inputs

  auto tie() const {
    return std::tie(op, keys, grad, backward, classes);
  }
  bool operator<(const Call& other) const {
    return tie() < other.tie();
  }
};

// A call that has begun and not ended. Inside at::parallel_for its thread works for the operator that opened the region.
struct Frame {
  Call call;
  bool in_parallel_region;
};

struct Edge {
  Call parent;
  const Operator* child;
  bool adopted;

  bool operator<(const Edge& other) const {
    return std::tie(parent, child, adopted) < std::tie(other.parent, other.child, other.adopted);
  }
};

std::mutex mutex;
std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<Operator>> operators;
std::vector<std::unique_ptr<Operator>> retired;  // of schemas whose memory was used again
std::map<Edge, uint64_t> edges;
std::map<Call, uint64_t> outermost;
std::unordered_map<int64_t, Call> forward;  // by sequence number: the innermost call that could have made this node
std::thread::id owner;
const std::vector<Frame>* owner_stack = nullptr;
thread_local std::vector<Frame> stack;
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
  std::set<std::string> classes;

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
    } else if (value.isObject()) {
      add_class(value.toObjectRef().name());
    }
  }

  // `quantized` of `__torch__.torch.classes.quantized.LinearPackedParamsBase`
  void add_class(const std::string& name) {
    static const std::string prefix = "__torch__.torch.classes.";
    if (name.compare(0, prefix.size(), prefix) == 0) {
      classes.insert(name.substr(prefix.size(), name.find('.', prefix.size()) - prefix.size()));
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
  return {op, keys.raw_repr(), seen.requires_grad && at::GradMode::is_enabled(), false, std::move(seen.classes)};
}

// An autograd node carries the sequence number of the forward call that made it.
Call node_of(const at::RecordFunction& function) {
  auto made_by = forward.find(function.seqNr());
  if (made_by == forward.end()) {
    return {};
  }
  Call node = made_by->second;
  node.backward = true;
  return node;
}

// What the owner was in when it opened the parallel region that this pool thread works in; null if none.
const Call* opener_of_region() {
  if (std::this_thread::get_id() == owner || !at::in_parallel_region()) {
    return nullptr;
  }
  const Call* opener = nullptr;
  for (const Frame& frame : *owner_stack) {
    if (!frame.in_parallel_region) {
      opener = &frame.call;
    }
  }
  return opener;
}

void count(const Call& call) {
  bool adopted = stack.empty();
  const Call* parent = adopted ? opener_of_region() : &stack.back().call;
  if (parent == nullptr || parent->op == nullptr) {
    ++outermost[call];
  } else {
    ++edges[{*parent, call.op, adopted}];
  }
}

void record(const at::RecordFunction& function) {
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    stack.push_back({node_of(function), at::in_parallel_region()});
    return;
  }
  Call call = describe_call(function, std::get<at::RecordFunction::schema_ref_t>(function.fn_).get());
  count(call);
  if (function.seqNr() >= 0) {
    forward[function.seqNr()] = call;
  }
  stack.push_back({std::move(call), at::in_parallel_region()});
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  bool dispatch = std::holds_alternative<at::RecordFunction::schema_ref_t>(function.fn_);
  if (!dispatch && function.scope() != at::RecordScope::BACKWARD_FUNCTION) {  // a user's range
    return nullptr;
  }
  std::lock_guard<std::mutex> guard(mutex);
  try {
    record(function);
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

// Tab-separated: operator, `backward` or `grad` or -, dispatch keys, namespaces of custom classes.
void write_call(FILE* file, const Call& call) {
  std::string keys, classes;
  for (c10::DispatchKey key : c10::DispatchKeySet(c10::DispatchKeySet::RAW, call.keys)) {
    keys += (keys.empty() ? "" : ",") + std::string(c10::toString(key));
  }
  for (const std::string& name : call.classes) {
    classes += (classes.empty() ? "" : ",") + name;
  }
  const char* mode = call.backward ? "backward" : call.grad ? "grad" : "-";
  std::fprintf(file, "%s\t%s\t%s\t%s", call.op->name.c_str(), mode, keys.c_str(), classes.c_str());
}

}  // namespace

extern "C" void recorder_start() {
  for (auto& definition : c10::Dispatcher::singleton().operators_) {
    const_cast<bool&>(definition.op.is_observed_) = true;
  }
  owner = std::this_thread::get_id();
  owner_stack = &stack;
  handle = at::addGlobalCallback(
      at::RecordFunctionCallback(on_start, on_end).needsInputs(true).scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
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
    write_call(file, edge.parent);
    std::fprintf(file, "\t%s\t%s\t%llu\n", edge.child->name.c_str(), edge.adopted ? "adopted" : "-",
                 static_cast<unsigned long long>(count));
  }
  for (const auto& [call, count] : outermost) {
    std::fputs("top\t", file);
    write_call(file, call);
    std::fprintf(file, "\t%llu\n", static_cast<unsigned long long>(count));
  }
  edges.clear();
  outermost.clear();
  forward.clear();
  return std::fclose(file) == 0 ? static_cast<long>(failures) : -1;
}

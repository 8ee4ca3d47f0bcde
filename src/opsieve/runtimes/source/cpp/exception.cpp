// PyTorch's own c10/util/Exception.cpp, whose exceptions explain what this runtime leaves out.
#include <c10/util/Exception.h>
#include <opsieve/explain.h>

// The one place where an exception gets its message: `msg_(std::move(msg))`.
#define msg_(message) msg_(::opsieve::explained(message))
#include <c10/util/Exception.cpp>

// Words for what this runtime leaves out.
#pragma once

#include <exception>
#include <string>

namespace opsieve {

// A message of PyTorch's, and, if it tells of an operator, class or dtype that is not here, how to add that.
// PyTorch's own exceptions have these words already: their constructor calls this.
std::string explained(std::string message);

// What an exception says, without a stack trace, and explained.
std::string explain(const std::exception& error);

} // namespace opsieve

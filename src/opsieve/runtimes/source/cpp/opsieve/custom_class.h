// Custom classes that a model names.
#pragma once

#include <torch/custom_class.h>

#include <string>

namespace opsieve {

// Of the full name, `__torch__.torch.classes.` and so on. Throws c10::Error where torch::getCustomClass returns null,
// which PyTorch's loaders of models do not look for.
at::ClassTypePtr required_class(const std::string& name);

} // namespace opsieve

#pragma once
namespace at { enum class Tag { core, pointwise }; }

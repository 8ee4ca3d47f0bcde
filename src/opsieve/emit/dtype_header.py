"""`ATen/selected_mobile_ops.h`: the header by which PyTorch's kernels leave out dtypes.

Only the dtypes are in ours. The lists of operators and classes that PyTorch's own generator puts there are not needed
where registrations ride with their operator, and a macro that is not defined selects everything.
"""

from __future__ import annotations

from opsieve.dtypes import KernelDtypes

_HEAD = """\
#pragma once
// Written by opsieve. The dtypes that kernels keep.
#include <c10/core/ScalarType.h>

namespace at {

constexpr bool opsieve_same_tag(const char* one, const char* other) {
  for (; *one != '\\0' && *one == *other; ++one, ++other) {
  }
  return *one == *other;
}

inline constexpr bool should_include_kernel_dtype(const char* kernel_tag_str, at::ScalarType scalar_type) {
"""

_FOOT = """\
  (void)kernel_tag_str;
  return false;
}

} // namespace at
"""


def dtype_header(dtypes: KernelDtypes) -> str:
    """The header's text; the same dtypes give the same bytes."""
    lines = [f"  if (scalar_type == at::ScalarType::{name}) return true;" for name in sorted(dtypes.everywhere)]
    for tag, names in dtypes.by_tag:
        kept = sorted(names - dtypes.everywhere)
        if kept:
            chosen = " || ".join(f"scalar_type == at::ScalarType::{name}" for name in kept)
            lines.append(f'  if (opsieve_same_tag(kernel_tag_str, "{_escaped(tag)}")) return {chosen};')
    return _HEAD + "".join(f"{line}\n" for line in lines) + _FOOT


def _escaped(tag: str) -> str:
    return tag.replace("\\", "\\\\").replace('"', '\\"')

// What code that dispatches an operator says to the linker.
#pragma once

// Within a function: it needs the operator of this symbol.
#define OPSIEVE_NEEDS(symbol) \
  asm volatile(".hidden " symbol "\n.reloc ., BFD_RELOC_NONE, " symbol)

// An operator's name as an expression, anywhere.
#define OPSIEVE_NAMED(symbol, text) ([] { OPSIEVE_NEEDS(symbol); return text; }())

// The shape of opsieve/registration.h, without PyTorch.
#pragma once

struct Registration {
  const char* name;
  void (*function)();
};

#define NEEDS(symbol) asm volatile(".hidden " symbol "\n.reloc ., BFD_RELOC_NONE, " symbol)
#define RELOCATION(symbol) ".reloc ., BFD_RELOC_NONE, " symbol "\n"

#define ENTRY(id, symbol, needs, function)                                                     \
  static const Registration opsieve_registration_##id asm("opsieve_registration_" #id)         \
      __attribute__((used)) = {symbol, function};                                              \
  asm(".pushsection opsieve_registrations,\"aw\",%progbits,unique," #id "\n.balign 8\n"        \
      ".weak " symbol "\n.hidden " symbol "\n.type " symbol ", %object\n" symbol ":\n"         \
      needs ".quad opsieve_registration_" #id "\n.size " symbol ", 8\n.popsection\n")

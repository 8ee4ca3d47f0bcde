// What a stand-in does: see link/stand_ins.py.
#include <c10/util/Exception.h>

namespace opsieve {

[[noreturn]] void missing(const char* what, const char* why);

void missing(const char* what, const char* why) {
  throw c10::Error(
      {__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)},
      c10::str("This opsieve build does not contain ", what, ": ", why));
}

} // namespace opsieve

// arc4random for a program that carries libstdc++: Debian's std::random_device calls it, glibc has
// it since 2.36 only, and Ubuntu 22.04 has 2.35.  Linked in, it is found before glibc's.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" uint32_t arc4random() {
  uint32_t word = 0;
  if (getrandom(&word, sizeof word, 0) != sizeof word)
    std::abort();  // up to 256 bytes: all or none
  return word;
}

// Reflected polynomial 0x82F63B78, start and final xor 0xFFFFFFFF.
//
// One stream of the crc32 instruction takes 3 cycles for 8 bytes, about 8 GB/s: faster than any
// disk that a checkpoint goes to, so it is not interleaved further.
#include "ridge/core/crc32c.h"

#include <array>
#include <cstring>

#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

namespace ridge {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78U;

using Table = std::array<uint32_t, 256>;

constexpr Table MakeTable() {
  Table table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0U);
    table[byte] = crc;
  }
  return table;
}
constexpr Table kTable = MakeTable();

// Product of two polynomials modulo CRC-32C's; the highest bit is the coefficient of x^0.
uint32_t MultiplyPolynomials(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 1U << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0U);
  }
  return product;
}

}  // namespace

uint32_t Crc32cByTable(std::string_view data, uint32_t crc) {
  crc = ~crc;
  for (const char c : data) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return ~crc;
}

#ifdef __SSE4_2__
uint32_t Crc32c(std::string_view data, uint32_t crc) {
  uint64_t state = static_cast<uint32_t>(~crc);
  for (; data.size() >= 8; data.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, data.data(), 8);
    state = _mm_crc32_u64(state, word);
  }
  auto tail = static_cast<uint32_t>(state);
  for (const char c : data) tail = _mm_crc32_u8(tail, static_cast<uint8_t>(c));
  return ~tail;
}
#else
uint32_t Crc32c(std::string_view data, uint32_t crc) { return Crc32cByTable(data, crc); }
#endif

// Appending n bytes multiplies the polynomial before them by x^(8n).
uint32_t JoinCrc32c(uint32_t first, uint32_t second, int64_t second_bytes) {
  uint32_t factor = 1U << 31, square = 1U << 23;  // x^0, x^8
  for (auto bytes = static_cast<uint64_t>(second_bytes); bytes != 0; bytes >>= 1) {
    if ((bytes & 1) != 0) factor = MultiplyPolynomials(factor, square);
    square = MultiplyPolynomials(square, square);
  }
  return MultiplyPolynomials(factor, first) ^ second;
}

uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U; }

}  // namespace ridge

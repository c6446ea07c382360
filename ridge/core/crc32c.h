// CRC-32C (Castagnoli): the checksum of TFRecord and TensorBoard files, and of our checkpoints.
//
// Uses the processor's instruction where the build may (x86-64-v2 has it), else tables.
#pragma once
#include <cstdint>
#include <string_view>

namespace ridge {

// Of `data` appended to bytes whose CRC is `crc`; start with 0.
uint32_t Crc32c(std::string_view data, uint32_t crc = 0);

// Of two pieces one after the other, of which the CRCs are known and the second's length.
uint32_t JoinCrc32c(uint32_t first, uint32_t second, int64_t second_bytes);

// Crc32c() by tables, on every machine; the tests hold both against each other.
uint32_t Crc32cByTable(std::string_view data, uint32_t crc = 0);

// As TFRecord stores it: a CRC over bytes that hold a CRC is weak, so it is rotated and shifted.
uint32_t MaskCrc32c(uint32_t crc);

}  // namespace ridge

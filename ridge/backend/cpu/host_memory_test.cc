#include "ridge/backend/cpu/host_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ridge::cpu {
namespace {

TEST(HostMemory, MemoryThatWasOnlyReadIsNotResident) {
  for (const int64_t bytes : {int64_t{1} << 20, int64_t{256} << 20}) {  // small pages, huge pages
    const auto mapped = HostMemory::Map(bytes, /*threads=*/1);
    ASSERT_TRUE(mapped.ok());
    const Memory& memory = **mapped;
    volatile std::byte sum{};
    for (int64_t i = 0; i < bytes; i += 4096) sum = sum | memory.data()[i];
    EXPECT_EQ(memory.resident_bytes(), 0);
    std::memset(memory.data(), 1, 1 << 20);
    EXPECT_GE(memory.resident_bytes(), 1 << 20);
    EXPECT_LE(memory.resident_bytes(), memory.bytes());
  }
}

}  // namespace
}  // namespace ridge::cpu

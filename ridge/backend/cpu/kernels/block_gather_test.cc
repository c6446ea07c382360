#include "ridge/backend/cpu/kernels/block_gather.h"

#include <gtest/gtest.h>

#include <vector>

namespace ridge::cpu {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

// All blocks, each at its place, against oneDNN's reorder.
void ExpectGathered(const memory::dims& dims, Tag row_major, Tag blocked) {
  const memory::desc from(dims, memory::data_type::f32, row_major);
  const memory::desc to(dims, memory::data_type::f32, blocked);
  std::vector<float> x(from.get_size() / sizeof(float)), y(to.get_size() / sizeof(float), -1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  memory source(from, engine, x.data()), target(to, engine, y.data());
  dnnl::reorder(source, target).execute(stream, source, target);
  stream.wait();
  const auto gather = BlockGather::Plan(to);
  ASSERT_TRUE(gather.has_value());
  ASSERT_EQ(static_cast<size_t>(gather->blocks() * gather->elements()), y.size());
  std::vector<float> z(y.size(), -2);
  for (int64_t k = 0; k < gather->blocks(); ++k)
    gather->Gather(x.data(), k, z.data() + gather->PlaceOf(k));
  EXPECT_EQ(z, y);
}

TEST(BlockGather, PutsElementsWhereTheLayoutHasThem) {
  ExpectGathered({64, 128}, Tag::ab, Tag::BA16a64b);  // rows are copied
  ExpectGathered({64, 128}, Tag::ab, Tag::AB16b64a);  // squares are turned
  ExpectGathered({32, 48, 1, 1}, Tag::abcd, Tag::ABcd16b16a);
  ExpectGathered({32, 48, 3, 3}, Tag::abcd, Tag::ABcd16b16a);  // neither side is contiguous
  ExpectGathered({32, 48, 3, 2}, Tag::abcd, Tag::BAcd16a16b);
  ExpectGathered({64, 3, 7, 7}, Tag::abcd, Tag::Acdb16a);
}

TEST(BlockGather, FillsPaddingWithZeros) {
  ExpectGathered({19, 70}, Tag::ab, Tag::BA16a64b);
  ExpectGathered({5000, 40}, Tag::ab, Tag::AB16b64a);
  ExpectGathered({1, 1}, Tag::ab, Tag::BA16a64b);
  ExpectGathered({24, 20, 3, 3}, Tag::abcd, Tag::ABcd16b16a);
  ExpectGathered({24, 3, 3, 3}, Tag::abcd, Tag::Acdb16a);
}

TEST(BlockGather, LeavesLayoutsWithoutBlocksAndWithCutBlocksAlone) {
  const auto plan = [](const memory::dims& dims, Tag tag) {
    return BlockGather::Plan({dims, memory::data_type::f32, tag});
  };
  EXPECT_FALSE(plan({16, 16}, Tag::ba));
  EXPECT_FALSE(plan({32, 32, 1, 1}, Tag::ABcd8a16b2a));
}

}  // namespace
}  // namespace ridge::cpu

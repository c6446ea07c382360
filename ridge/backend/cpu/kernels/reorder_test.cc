#include "ridge/backend/cpu/kernels/reorder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ridge/backend/cpu/host_device.h"

namespace ridge::cpu {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

memory::desc Desc(const memory::dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

class StridedReorders : public testing::Test {
 protected:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};

  std::vector<float> ByOneDnn(const memory::desc& from, const memory::desc& to,
                              std::vector<float> x) {
    std::vector<float> y(to.get_size() / sizeof(float), -1);
    memory source(from, engine_, x.data()), target(to, engine_, y.data());
    dnnl::reorder(source, target).execute(stream_, source, target);
    stream_.wait();
    return y;
  }

  void ExpectSameBytes(const memory::dims& dims, Tag from_tag, Tag to_tag) {
    const memory::desc from = Desc(dims, from_tag), to = Desc(dims, to_tag);
    const auto copy = PlanStridedReorder(from, to, sizeof(float));
    ASSERT_TRUE(copy.has_value());
    std::vector<float> x(from.get_size() / sizeof(float)), y(x.size(), -1);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    const std::vector<float> expected = ByOneDnn(from, to, x);
    for (const int threads : {1, 2}) {
      std::fill(y.begin(), y.end(), -1.0F);
      const void* in = x.data();
      void* out = y.data();
      ASSERT_TRUE(
          RunOnHost(*MakeStridedReorder(*copy, threads), {{&in, 1}, {&out, 1}, nullptr}).ok());
      EXPECT_EQ(y, expected);
    }
  }
};

TEST_F(StridedReorders, MoveWhatOneDnnMoves) {
  ExpectSameBytes({64, 48, 1, 1}, Tag::abcd, Tag::ABcd16b16a);
  ExpectSameBytes({64, 48, 1, 1}, Tag::ABcd16b16a, Tag::abcd);
  ExpectSameBytes({32, 96, 1, 1}, Tag::ABcd16b16a, Tag::ABcd16a16b);
  ExpectSameBytes({2, 32, 7, 9}, Tag::abcd, Tag::aBcd16b);
  ExpectSameBytes({2, 32, 7, 9}, Tag::aBcd16b, Tag::abcd);
  ExpectSameBytes({2, 32, 7, 9}, Tag::aBcd16b, Tag::acdb);
  ExpectSameBytes({3, 32, 4, 5}, Tag::acdb, Tag::aBcd16b);
  ExpectSameBytes({128, 192}, Tag::ab, Tag::BA16a64b);
  ExpectSameBytes({128, 192}, Tag::ba, Tag::BA16a64b);
  ExpectSameBytes({17, 31}, Tag::ab, Tag::ba);
}

TEST_F(StridedReorders, LeavePaddingAndShortRunsToOneDnn) {
  EXPECT_FALSE(PlanStridedReorder(Desc({2, 20, 7, 9}, Tag::abcd), Desc({2, 20, 7, 9}, Tag::aBcd16b),
                                  sizeof(float)));
  EXPECT_FALSE(PlanStridedReorder(Desc({32, 32, 3, 3}, Tag::abcd),
                                  Desc({32, 32, 3, 3}, Tag::ABcd16b16a), sizeof(float)));
}

}  // namespace
}  // namespace ridge::cpu

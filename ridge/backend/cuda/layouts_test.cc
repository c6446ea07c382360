#include "ridge/backend/cuda/layouts.h"

#include <gtest/gtest.h>

namespace ridge::cuda {
namespace {

TensorType Type(Dims dims) { return {DType::kF32, std::move(dims)}; }

TEST(CudaLayouts, ChannelsComeLast) {
  EXPECT_EQ(StoredChannelsLast(Type({2, 3, 5, 7})), Type({2, 5, 7, 3}));
  EXPECT_EQ(StoredChannelsLast(Type({2, 3, 5})), Type({2, 5, 3}));
  EXPECT_EQ(StoredChannelsLast(Type({2, 3, 4, 5, 7})), Type({2, 4, 5, 7, 3}));
  for (int d = 0; d < 4; ++d)
    EXPECT_EQ(ChannelsLastOrder(4)[static_cast<size_t>(ChannelsLastPlace(d, 4))],
              static_cast<size_t>(d));
}

TEST(CudaLayouts, OneChannelOrOnePositionIsTheSameInBoth) {
  EXPECT_TRUE(HasLayouts(Type({2, 3, 5, 7})));
  EXPECT_TRUE(HasLayouts(Type({1, 3, 1, 2})));
  for (const Dims& dims :
       {Dims{2, 1, 5, 7}, Dims{2, 3, 1, 1}, Dims{0, 3, 5, 7}, Dims{3, 5}, Dims{2, 3, 2, 2, 2, 2}})
    EXPECT_FALSE(HasLayouts(Type(dims))) << DimsToString(dims);
}

// A weight [8,4,1,1] that is at hand in either layout is read as it is, and written row-major.
TEST(CudaLayouts, WhatIsTheSameInBothIsNotCopied) {
  OpCall call;
  call.inputs = {Type({2, 4, 5, 5}), Type({8, 4, 1, 1})};
  call.outputs = {Type({8, 4, 1, 1})};
  KernelChoice choice;
  choice.input_layouts = {kChannelsLast, kChannelsLast};
  choice.output_layouts = {kChannelsLast};
  TakeEitherLayout(call, std::vector<LayoutId>{kRowMajor, kRowMajor}, choice);
  EXPECT_EQ(choice.input_layouts, (std::vector<LayoutId>{kChannelsLast, kRowMajor}));
  EXPECT_EQ(choice.output_layouts, (std::vector<LayoutId>{kRowMajor}));
  EXPECT_TRUE(IsChannelsLast(call, choice));
  TakeEitherLayout(call, std::vector<LayoutId>{kRowMajor, kChannelsLast}, choice);
  EXPECT_EQ(choice.input_layouts[1], kChannelsLast);
}

}  // namespace
}  // namespace ridge::cuda

// Text that finds the largest of a block's numbers, with its place.
#pragma once
#include <string_view>

namespace ridge::cuda {

// struct Best {double value; i64 place;}; of two, Better() takes the larger value, of equal ones
// the lower place.  BlockBest(own, values, places): the best of all threads, in each of them;
// `values` and `places` hold 32 numbers of shared memory each, and are free again when it returns.
// Values below 0 are none.
std::string_view BestText();

}  // namespace ridge::cuda

#include "ridge/graph/ops/shared/dynamic_code.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ridge {
namespace {

int SkippedOf(CodeSigns signs) { return signs == CodeSigns::kSigned ? 0 : 1; }

// That of a rank from 1, but not of 1.
double ValueOf(int skipped, int rank) {
  const auto place = static_cast<unsigned>(rank + skipped);
  const int decade = std::bit_width(place) - 1 - skipped;
  const double cells = std::bit_floor(place);
  const double centre = (static_cast<double>(place) - cells + 0.5) / cells;
  return std::pow(10.0, decade - 6) * (0.1 + 0.9 * centre);
}

Decades MakeDecades(CodeSigns signs) {
  Decades decades;
  decades.skipped = SkippedOf(signs);
  decades.top_rank = (128 << decades.skipped) - decades.skipped;
  double below = 0;
  for (int d = 0; d < kDecades; ++d) {
    const int cells = 1 << (d + decades.skipped), rank = cells - decades.skipped;
    const auto i = static_cast<size_t>(d);
    decades.scale[i] = cells * std::pow(10.0, 6 - d) / 0.9;
    decades.first[i] = (below + ValueOf(decades.skipped, rank)) / 2;
    below = ValueOf(decades.skipped, rank + cells - 1);
  }
  decades.top = (below + 1) / 2;
  return decades;
}

int RankOf(const Decades& decades, double x) {
  if (x >= decades.top) return decades.top_rank;
  const auto above = std::upper_bound(decades.first.begin(), decades.first.end(), x);
  if (above == decades.first.begin()) return decades.skipped != 0 && x > 0 ? 1 : 0;
  const auto d = static_cast<size_t>(above - decades.first.begin() - 1);
  const int cells = 1 << (static_cast<int>(d) + decades.skipped);
  const double rank = std::floor(decades.scale[d] * x + cells * 8.0 / 9);
  return std::min(static_cast<int>(rank), 2 * cells - 1) - decades.skipped;
}

}  // namespace

const Decades& DecadesOf(CodeSigns signs) {
  static const Decades kSigned = MakeDecades(CodeSigns::kSigned);
  static const Decades kUnsigned = MakeDecades(CodeSigns::kUnsigned);
  return signs == CodeSigns::kSigned ? kSigned : kUnsigned;
}

double DynamicValue(CodeSigns signs, int code) {
  const Decades& decades = DecadesOf(signs);
  const int rank = signs == CodeSigns::kSigned ? code - kSignedZero : code;
  if (rank == 0) return 0;
  if (rank == decades.top_rank) return 1;
  return std::copysign(ValueOf(decades.skipped, std::abs(rank)), rank);
}

uint8_t DynamicCode(CodeSigns signs, double x) {
  const Decades& decades = DecadesOf(signs);
  const int rank = RankOf(decades, std::fabs(x));
  if (signs == CodeSigns::kUnsigned) return static_cast<uint8_t>(rank);
  return static_cast<uint8_t>(x < 0 ? kSignedZero - std::min(rank, decades.top_rank - 1)
                                    : kSignedZero + rank);
}

}  // namespace ridge

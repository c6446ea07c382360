// Weighted sums of rows, vectorized.
#pragma once
#include <cstdint>
#include <vector>

namespace ridge::cpu {

// The table of `interpolate`, by rows: row o has the entries [starts[o], starts[o + 1]).
template <typename T>
struct RowTable {
  std::vector<int64_t> starts;
  std::vector<int32_t> places;
  std::vector<T> weights;
  // For rows one element wide: runs of `kRun` rows with `entries` entries each (-1: of different
  // length) have them interleaved at `runs[r].first`: entry 0 of all rows, entry 1 of all rows, ...
  static constexpr int64_t kRun = 16;
  struct Run {
    int64_t first = 0, entries = -1;
  };
  std::vector<Run> runs;
  std::vector<int32_t> run_places;
  std::vector<T> run_weights;

  int64_t rows() const { return static_cast<int64_t>(starts.size()) - 1; }
  void MakeRuns();
};

// y[i] = sum over the entries of row o of weight * x[place * width + i], for i in [0, width).
void SumWideRow(const RowTable<float>& table, int64_t o, int64_t width, const float* x, float* y);
void SumWideRow(const RowTable<double>& table, int64_t o, int64_t width, const double* x,
                double* y);
// y[o] = sum over the entries of row o of weight * x[place], for every row; after MakeRuns().
void SumNarrowRows(const RowTable<float>& table, const float* x, float* y);
void SumNarrowRows(const RowTable<double>& table, const double* x, double* y);

}  // namespace ridge::cpu

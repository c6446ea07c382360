// Inner loops of the reductions over f32 and bf16 (uint16_t), in f32: along a contiguous run, and
// down the rows of a matrix.
//
// Sums are taken in blocks: a block in f32 registers, blocks in double (runs) or one after another
// (rows), so the error grows with the number of blocks, not of elements.
#pragma once
#include <cstdint>

namespace ridge::cpu {

enum class Reduction : uint8_t { kSum, kMax, kMin };  // NaN wins in kMax and kMin

// What the reduction gives for no elements.
double ReductionStart(Reduction kind);
double Combine(Reduction kind, double a, double b);

double ReduceRun(Reduction kind, const float* x, int64_t count);
double ReduceRun(Reduction kind, const uint16_t* x, int64_t count);

// acc[c] = combine(acc[c], x[r * row_stride + c]) for all r < rows, c < columns.
void ReduceRows(Reduction kind, const float* x, int64_t row_stride, int64_t rows, int64_t columns,
                float* acc);
void ReduceRows(Reduction kind, const uint16_t* x, int64_t row_stride, int64_t rows,
                int64_t columns, float* acc);

}  // namespace ridge::cpu

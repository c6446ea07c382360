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

// The sum of exp(x - shift).  REQUIRES: no x is above `shift`, unless that is infinite or NaN,
// where the sum has no meaning.
double SumExpRun(const float* x, int64_t count, float shift);
double SumExpRun(const uint16_t* x, int64_t count, float shift);

// acc[c] += exp(x[r * row_stride + c] - shift[c]) for all r < rows, c < columns.
void SumExpRows(const float* x, int64_t row_stride, int64_t rows, int64_t columns,
                const float* shift, float* acc);
void SumExpRows(const uint16_t* x, int64_t row_stride, int64_t rows, int64_t columns,
                const float* shift, float* acc);

// y += log(sums) where y is finite.
void AddLog(const float* sums, int64_t count, float* y);

}  // namespace ridge::cpu

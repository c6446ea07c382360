// The families of what is drawn: each adds a few nodes to the sketch and keeps their results, or
// nothing where its draw does not fit.
#pragma once
#include "tests/generate/sketch.h"

namespace ridge {

void DrawUnary(Sketch& s);
void DrawBinary(Sketch& s);
void DrawSelect(Sketch& s);             // where, masks
void DrawBackwardPointwise(Sketch& s);  // relu_grad, gelu_grad, silu_grad as forward nodes

void DrawCase(Sketch& s);  // an operator as one of its case files has it

void DrawReshape(Sketch& s);
void DrawTranspose(Sketch& s);
void DrawSlice(Sketch& s);
void DrawExpand(Sketch& s);
void DrawPad(Sketch& s);
void DrawConcat(Sketch& s);
void DrawSplit(Sketch& s);  // slices that are read each on its own, and joined

void DrawReduce(Sketch& s);
void DrawScan(Sketch& s);
void DrawSoftmax(Sketch& s);
void DrawDet(Sketch& s);
void DrawCtc(Sketch& s);

void DrawMatmul(Sketch& s);
void DrawLinear(Sketch& s);  // with bias and an epilogue
void DrawConv(Sketch& s);
void DrawTransposedConv(Sketch& s);
void DrawConvOfGradients(Sketch& s);
void DrawPool(Sketch& s);
void DrawConvPool(Sketch& s);  // a convolution, relu and a pool
void DrawInterpolate(Sketch& s);
void DrawRegions(Sketch& s);

void DrawBatchNorm(Sketch& s);
void DrawLayerNorm(Sketch& s);
void DrawNormNodes(Sketch& s);        // layer_norm and rms_norm as primitive nodes
void DrawActivationNodes(Sketch& s);  // gelu and silu as primitive nodes

void DrawAttention(Sketch& s);
void DrawAttentionNodes(Sketch& s);  // as exporters write it

void DrawGather(Sketch& s);
void DrawScatter(Sketch& s);
void DrawTopK(Sketch& s);
void DrawRecurrent(Sketch& s);
void DrawRandom(Sketch& s);  // dropout, noise

void DrawViewReadTwice(Sketch& s);
void DrawResidual(Sketch& s);
void DrawAgain(Sketch& s);           // a node that is there, once more
void DrawAxialAttention(Sketch& s);  // along one axis, then along another

// One of the smooth and the usual operators of one operand.
Value RandomActivation(Sketch& s, Value x);

}  // namespace ridge

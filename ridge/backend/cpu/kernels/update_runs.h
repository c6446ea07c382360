// One sweep of an optimizer over f32 arrays, vectorized, with exact square roots and divisions.
// Outputs may be the inputs' memory.
#pragma once
#include <cstdint>

namespace ridge::cpu {

struct AdamNumbers {
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float step_size;     // lr / (1 - beta1^step)
  float v_correction;  // sqrt(1 - beta2^step)
  float epsilon;
  float decay_grad;   // weight decay added to the gradient (Adam)
  float decay_param;  // factor of the parameter (AdamW), else 1
  float grad_scale = 1;
};
struct AdamArrays {
  const float *param, *grad, *m, *v;
  float *new_param, *new_m, *new_v;
};
void AdamRun(const AdamNumbers& numbers, const AdamArrays& arrays, int64_t begin, int64_t end);

struct SgdNumbers {
  float lr, momentum, weight_decay;
  bool nesterov;
  float grad_scale = 1;
};
struct SgdArrays {
  const float *param, *grad, *buffer;  // buffer may be nullptr
  float *new_param, *new_buffer;       // new_buffer may be nullptr
};
void SgdRun(const SgdNumbers& numbers, const SgdArrays& arrays, int64_t begin, int64_t end);

}  // namespace ridge::cpu

// For tests that train: a tiny request, and an observer that records.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/test_folder.h"
#include "ridge/train/loop/trainer.h"
#include "ridge/train/options/test_machine.h"

namespace ridge {

// Two convolutions, each with a batch norm, and a sum around the second.
inline constexpr char kNormNet[] = R"(graph net
  x = input f32[batch,2,8,8]
  label = input i64[batch]
  k = parameter f32[20,2,3,3] init=uniform(0.3)
  c = conv(x, k, padding=[1,1,1,1])
  scale = parameter f32[20] init=constant(1)
  shift = parameter f32[20] init=zeros
  mean = state f32[20] init=zeros role=statistic
  var = state f32[20] init=constant(1) role=statistic
  n, n.mean, n.var = batch_norm(c, scale, shift)
  r = relu(n)
  k2 = parameter f32[20,20,3,3] init=uniform(0.3)
  c2 = conv(r, k2, padding=[1,1,1,1])
  scale2 = parameter f32[20] init=constant(1)
  shift2 = parameter f32[20] init=zeros
  mean2 = state f32[20] init=zeros role=statistic
  var2 = state f32[20] init=constant(1) role=statistic
  n2, n2.mean, n2.var = batch_norm(c2, scale2, shift2)
  s = add(n2, r)
  r2 = relu(s)
  p = reduce_mean(r2, axes=[2,3])
  w = parameter f32[5,20] init=uniform(0.3)
  logits = matmul(p, w, transpose_b=1)
  losses = softmax_cross_entropy(logits, label)
  loss = reduce_mean(losses)
  keep = constant f32[] 0.9
  take = constant f32[] 0.1
  m.1 = mul(mean, keep)
  m.2 = mul(n.mean, take)
  m.3 = add(m.1, m.2)
  v.1 = mul(var, keep)
  v.2 = mul(n.var, take)
  v.3 = add(v.1, v.2)
  m2.1 = mul(mean2, keep)
  m2.2 = mul(n2.mean, take)
  m2.3 = add(m2.1, m2.2)
  v2.1 = mul(var2, keep)
  v2.2 = mul(n2.var, take)
  v2.3 = add(v2.1, v2.2)
  output logits
  output loss
  update mean = m.3
  update var = v.3
  update mean2 = m2.3
  update var2 = v2.3
)";

struct Recorder : TrainObserver {
  std::vector<double> losses;
  std::vector<EvaluationReport> evaluations;
  std::vector<int64_t> checkpoints;
  std::vector<std::string> warnings;
  RunStart start;

  void OnStart(const RunStart& s) override { start = s; }
  void OnStep(const StepReport& r) override { losses.push_back(r.loss); }
  void OnEvaluation(const EvaluationReport& r) override { evaluations.push_back(r); }
  void OnCheckpoint(int64_t step, const std::string&) override { checkpoints.push_back(step); }
  void OnWarning(const std::string& text) override { warnings.push_back(text); }
};

// A tiny network; the test sets the data.
inline TrainRequest TinyRequest(const std::string& out) {
  TrainRequest request;
  request.options.model = "mlp:hidden=8,layers=1,inputs=12,classes=3";
  request.options.batch = 8;
  request.options.out = out;
  request.rehearse_s = 0;
  return request;
}

}  // namespace ridge

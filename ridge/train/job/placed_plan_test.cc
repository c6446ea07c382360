// Of a table that rests on the host nothing lies on the device: no gradient, no sum, no moment, no
// average, whatever the training adds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ridge/graph/text.h"
#include "ridge/train/job/job.h"
#include "ridge/train/options/test_machine.h"

namespace ridge {
namespace {

constexpr char kNet[] = R"(graph net
  ids = input i64[batch=12,5]
  label = input i64[batch=12,5]
  table = parameter f32[320,16] init=normal(1)
  x = gather(table, ids)
  w = parameter f32[16,16] init=normal(1)
  h = matmul(x, w)
  g = gelu(h)
  fc = parameter f32[3,16] init=normal(1)
  logits = matmul(g, fc, transpose_b=1)
  each = softmax_cross_entropy(logits, label)
  loss = reduce_mean(each)
  output loss
)";
const Dims kTable = {320, 16};

class PlacedPlan : public ::testing::Test {
 protected:
  PlacedPlan() : host_(MakeReferenceBackend()) {
    Result<Graph> graph = ParseGraph(kNet, "net.ridge");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    forward_ = std::move(*graph);
    machine_ = device_.get();
    machine_.backend->SetHost(*host_);
    machine_.host_link_bytes_per_s = 5e10;
  }

  static TrainOptions Placed() {
    TrainOptions options;
    options.model = "net";
    options.batch = 12;
    options.slices = "1";
    options.recompute = "off";
    options.place = {"table=cpu"};
    return options;
  }

  // The names of what has the table's shape on the device, a line each.
  std::string OnDevice(const TrainOptions& options) {
    const Result<PlannedJob> job = PlanTrainingOnly(options, forward_, machine_);
    EXPECT_TRUE(job.ok()) << job.status().message();
    std::string names;
    for (const PersistentValue& value : job->program.persistent) {
      if (value.type.dims == kTable && !value.on_host) names += value.name + "\n";
    }
    for (const StepPlan& step : job->program.steps) {
      for (const PlannedValue& value : step.values) {
        if (value.type.dims == kTable && !value.persistent && !value.on_host)
          names += step.name + " " + value.name + "\n";
      }
    }
    return names;
  }

  const TestMachine device_;
  const std::unique_ptr<Backend> host_;
  Graph forward_;
  Machine machine_;
};

TEST_F(PlacedPlan, NothingOfATablesShapeIsOnTheDevice) {
  for (const char* optimizer : {"sgd", "adam"}) {
    for (const char* slices : {"1", "2"}) {
      for (const int64_t accumulate : {1, 2}) {
        for (const double clip : {0.0, 1.0}) {
          for (const double ema : {0.0, 0.9}) {
            TrainOptions options = Placed();
            options.optimizer.name = optimizer;
            options.slices = slices;
            options.accumulate = accumulate;
            options.clip_norm = clip;
            options.ema = ema;
            EXPECT_EQ(OnDevice(options), "")
                << fmt::format("{}, {} slices, accumulate {}, clip {}, ema {}", optimizer, slices,
                               accumulate, clip, ema);
          }
        }
      }
    }
  }
}

// A product takes longer on the host than its result takes to cross.
TEST_F(PlacedPlan, ProductsStayOnTheDevice) {
  TrainOptions options = Placed();
  options.place = {"*=cpu"};
  const Result<PlannedJob> job = PlanTrainingOnly(options, forward_, machine_);
  ASSERT_TRUE(job.ok()) << job.status().message();
  for (const StepPlan& step : job->program.steps) {
    for (const PlannedNode& node : step.nodes)
      EXPECT_FALSE(node.op == "matmul" && node.on_host) << node.name;
  }
}

TEST_F(PlacedPlan, ATreeOfSumsIsRefused) {
  TrainOptions options = Placed();
  options.sums = "tree";
  options.slices = "2";
  const Status status = PlanTrainingOnly(options, forward_, machine_).status();
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(status.message(),
            "--place: the blocks of --sums tree lie in the device's memory. hint: --sums running");
}

TEST_F(PlacedPlan, CopiesArePricedByTheLinkWherePlansAreCompared) {
  TrainOptions options = Placed();
  options.place = {"*=cpu"};
  const Result<PlannedJob> fast = PlanTrainingOnly(options, forward_, machine_);
  machine_.host_link_bytes_per_s = 1e3;
  const Result<PlannedJob> slow = PlanTrainingOnly(options, forward_, machine_);
  ASSERT_TRUE(fast.ok() && slow.ok());
  EXPECT_GT(slow->candidates.front().seconds, fast->candidates.front().seconds + 0.1);
}

}  // namespace
}  // namespace ridge

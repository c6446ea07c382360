// PipelineRole: what one device of a pipeline does, as data beside its steps.
//
// Values of a micro batch lie in states, whose names say whose they are:
//
//   batch/NAME       an input of the micro batch
//   CHUNK/NAME       what a chunk receives, makes and keeps
//   share/NAME       a number that stages need of each other for the update
//   eval.CHUNK/NAME  likewise of a batch that is evaluated; eval/NAME is an output
//
// Steps: batch (copies the inputs), forward.CHUNK, backward.CHUNK, weights.CHUNK, numbers.CHUNK,
// update.CHUNK; eval.CHUNK, and eval, which has all outputs of an evaluation and no node.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/pipeline/schedule.h"

namespace ridge {

// A value that devices send to others in each update: a share, or the copy of a tied weight.
struct UpdateMessage {
  std::string value;    // at the device that sends: a variable, or a state share/NAME
  std::string becomes;  // at those that receive
  int from = 0;
  std::vector<int> to;  // without `from`
  int64_t bytes = 0;
};

// A variable of the job: what a checkpoint has.
struct StageVariable {
  std::string name;
  TensorType type;
  ValueKind kind = ValueKind::kParameter;
  ValueRole role = ValueRole::kNone;
  Init init;
  int device = 0;                   // the first that has it
  std::vector<std::string> copies;  // of a tied weight
};

struct PipelineRole {
  int device = 0;  // all else is the same at all devices
  PipelineSchedule schedule;
  int capacity = 1;  // messages of a chunk and kind that may wait

  struct Chunk {
    std::vector<std::string> sends_forward, sends_backward, sends_eval;  // NAMEs
    int64_t forward_bytes = 0, backward_bytes = 0;
    double forward_s = 0, backward_s = 0, weights_s = 0, update_s = 0;  // planned
    double send_forward_s = 0, send_backward_s = 0;
  };
  std::vector<Chunk> chunks;
  std::vector<UpdateMessage> shares, copies;
  struct EvalOutput {
    std::string name;
    int device = 0;  // that makes it
  };
  std::vector<EvalOutput> eval_outputs;
  std::vector<StageVariable> variables;  // in order of names
  std::string kernels_sha256;            // of all devices' programs

  int64_t message_bytes(int device) const;  // that it sends for the micro batches of an update
  bool has_chunk(int chunk) const { return schedule.DeviceOf(chunk) == device; }
};

// Names of outputs of forward.CHUNK and backward.CHUNK begin so where they are the step's own.
inline constexpr char kResultPrefix[] = "result/";

std::string BatchState(const std::string& input);             // "batch/tokens"
std::string ChunkState(int chunk, const std::string& value);  // "2/h"
std::string ShareState(const std::string& value);
std::string EvalState(int chunk, const std::string& value);
std::string EvalOutputState(const std::string& output);
std::string ChunkStep(const char* what, int chunk);  // "forward.2"

// How many copies a state needs so that micro batch i can have copy i modulo their number: from the
// first operation of `from` on to the last one of `until`, of the same chunk and micro batch.  What
// is sent stays until so many later messages have gone that it must have been taken.
struct StateLife {
  std::vector<Operation> from, until;  // of micro batch 0
};
int64_t CopiesOf(const PipelineSchedule& schedule, int device, int capacity, const StateLife& life);

}  // namespace ridge

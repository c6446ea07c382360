// Serving: models that answer requests on one device: bytes, latency, how busy the device is,
// power, and why it is refused.
//
// All numbers are modelled: nothing runs.  A device runs one batch at a time; models take turns.
// What is asked for is a ServingLoad; what the planner says of its models on a device, one
// ModelCost each, makes a ServingOffer.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/plan/hardware/decoders.h"
#include "ridge/plan/hardware/hardware.h"

namespace ridge {

// Encoded pictures that come at a steady rate, from `count` senders.
struct ServingStream {
  std::string name = {};  // of a scenario; may be empty
  int64_t count = 1;
  double fps = 0;
  EncodedPictures pictures = {};
};

// Of a language model.
struct TokenCounts {
  int64_t prompt = 0;  // tokens that are read at once
  int64_t output = 1;  // tokens that are written, one after another
};

// A model and what is asked of it.
struct ServedModel {
  std::string model;           // "resnet50"
  std::string precision = {};  // "": what the device multiplies fastest
  int64_t batch = 1;           // samples a run; sequences that are written at the same time
  int64_t copies = 1;          // processes, each with its own weights
  // Requests a second: of each sender of its stream, else of each copy.  None: a copy asks again
  // as soon as it is answered.
  std::optional<double> rate_s = {};
  int stream = -1;  // index into ServingLoad::streams; -1: requests come by chance
  std::optional<TokenCounts> tokens = {};
};

struct ServingLimits {
  std::optional<double> latency_s = {}, power_w = {};
  std::optional<int64_t> memory_bytes = {};  // less than the device has
};

struct ServingLoad {
  std::string name;  // of a scenario; may be empty
  std::vector<ServingStream> streams = {};
  std::vector<ServedModel> models;  // all with a rate, or none
  ServingLimits limits = {};

  bool has_rates() const { return !models.empty() && models[0].rate_s.has_value(); }
};

// What a process and its model take on a device, as planned.
struct ModelCost {
  std::string precision;     // of the plan
  double low = 1, high = 1;  // of every second below: the range is from low to high times it
  double run_s = 0;          // of a batch; of a language model see prefill_s and token_s
  double prefill_s = 0;      // a prompt of one sequence
  double token_s = 0;        // a token of every sequence
  int64_t weight_bytes = 0, cache_bytes = 0;  // parameters and statistics; keys and values
  int64_t scratch_bytes = 0;                  // activations, workspaces, inputs
  int64_t runtime_bytes = 0;                  // context, libraries, code
};

// A model in an offer.
struct ModelOffer {
  ServedModel model;
  ModelCost cost;
  double service_s =
      0;                // that the device is busy for a batch, or for a request of a language model
  double answer_s = 0;  // from its start to its answer, alone
  double busy = 0;      // share of the device's time, of all copies
  double per_s = 0;     // samples a second of one copy, or tokens: as asked for, else at most
};

// A number with its range.
struct Spread {
  double low = 0, mid = 0, high = 0;
};

struct ServingOffer {
  std::string device;
  std::vector<ModelOffer> models;
  int64_t peak_bytes = 0, limit_bytes = 0;
  std::optional<double> decode_s = {};  // of a picture, with those before it; none: not known, or
                                        // nothing is decoded
  std::string decoder = {};             // "4 engines", "0.87 cores of the host", "?", ""
  Spread busy = {};                     // share of the time; 1 without rates
  Spread latency_s = {};                // of the slowest answer; infinity where the queue grows
  std::optional<Spread> power_w = {};   // of the board, on the mean
  std::optional<double> usd_hour = {};
  std::optional<double> usd_million = {};  // of a million samples, or tokens, of all models
  std::string price = {};
  std::vector<std::string> refusals = {};  // "memory", "rate", "latency", "power", "decoding"
  std::vector<std::string> notes = {};

  bool is_allowed() const { return refusals.empty(); }
};

// Share of its time that a device may be asked for: at 0.8 a request waits as long as two runs on
// the mean, at 0.9 four and a half, at 0.95 nine and a half (M/D/1: share / (2 (1 - share))).
inline constexpr double kMostBusy = 0.8;

// Work that comes again and again.
struct Arrivals {
  double service_s = 0;
  double rate_s = 0;     // a second, of all `count`
  int64_t count = 1;     // senders that may send at the same moment
  bool periodic = true;  // each sender at a steady rate; else by chance
};

// Share of the time that the device works.
double BusyShare(const std::vector<Arrivals>& arrivals);

// Seconds that a request waits before its own `service_s` of them begins: at most, where all are
// periodic, else in 99 of 100 cases; infinity at a share of 1 and above.
double WaitSeconds(const std::vector<Arrivals>& arrivals, double service_s);

// Bytes of all processes: copies hold their own weights, context and scratch; models without copies
// share a process, whose scratch is that of the largest.
int64_t ServingBytes(const std::vector<ServedModel>& models, const std::vector<ModelCost>& costs);

// `costs` by model; `memory_bytes` that one process may use.  `own`: the device costs nothing but
// its power, at usd_kwh.
struct ServingPrice {
  bool own = false;
  double usd_kwh = 0.15;
};
ServingOffer MakeServingOffer(const Hardware& hardware, const ServingLoad& load,
                              const std::vector<ModelCost>& costs, int64_t memory_bytes,
                              const ServingPrice& price = {});

enum class ServingOrder { kCost, kLatency, kPower };

// Allowed offers first, each group by `order`; those whose key is not known last, equal ones by
// latency and name.  The cost is that of an hour; without rates that of a million.
void RankServing(std::vector<ServingOffer>& offers, ServingOrder order);

}  // namespace ridge

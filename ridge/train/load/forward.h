// LoadForward: the forward graph of a training, with its loss, fitted to its data.
//
// Every verb that trains, plans or evaluates comes through here, so they mean the same graph.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/source.h"
#include "ridge/learn/training_graph.h"
#include "ridge/train/load/model_source.h"
#include "ridge/train/options/options.h"

namespace ridge {

struct Forward {
  Graph graph;
  ForwardFacts facts;
  ModelNotes notes;
  // Opened already, since the model's open dimensions and the labels' shape come from there; none
  // for `synthetic`, which is made after the model, and when there are no data.
  std::optional<DataSplits> data;
};

// `model` is what to load instead of options.model, such as the run's own copy; empty: that one.
// Fails as OpenData, LoadModel, WithLoss and InspectForward do, and with kInvalidArgument when the
// model is written for another batch, or when it brings its own training step and the options ask
// for another one.
Result<Forward> LoadForward(const TrainOptions& options, const std::string& model = "");

// The learning rate of a model whose own step reads none of ours: 0 when it is not known.
std::optional<double> FixedRate(const Forward& forward);

}  // namespace ridge

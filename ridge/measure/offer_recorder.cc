#include "ridge/measure/offer_recorder.h"

#include <fmt/format.h>

namespace ridge {

KernelOffers OfferRecorder::Offers(const OpDef& op, const OpCall& call,
                                   std::span<const LayoutId> available) {
  KernelOffers offers = inner_.Offers(op, call, available);
  Record({&op, call, offers.choices});
  return offers;
}

KernelChoice OfferRecorder::Reorder(const TensorType& type, LayoutId from, LayoutId to) {
  KernelChoice choice = inner_.Reorder(type, from, to);
  OpCall call;
  call.where = fmt::format("reorder of {}", TypeToString(type));
  call.inputs = call.outputs = {type};
  Record({nullptr, std::move(call), {choice}});
  return choice;
}

void OfferRecorder::Record(RecordedOffers offers) {
  std::string keys;
  for (const KernelChoice& choice : offers.choices) keys += choice.key + "\n";
  recorded_.try_emplace(std::move(keys), std::move(offers));
}

}  // namespace ridge

#include "ridge/dist/mpi_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ridge/core/rounding.h"

namespace ridge {
namespace {

constexpr int64_t kMostPiecesAhead = 64;

}  // namespace

Status MpiWorld::Fail(const char* what, int32_t error) const {
  std::array<char, 1024> text{};
  api.text_of(error, text.data(), static_cast<int64_t>(text.size()));
  return Status(ErrorCode::kUnavailable,
                fmt::format("rank {}: {} {}: {}", rank, library, what, text.data()));
}

Status MpiWorld::CheckReceived(int from, int32_t received, int32_t expected) const {
  if (received == expected) return Status();
  return Status(ErrorCode::kUnavailable,
                fmt::format("rank {}: rank {} sent {} bytes; {} were expected", rank, from,
                            received, expected));
}

Status MpiExchange::Start(const Sends& sends, const Receives& receives, bool lets_pass) {
  RIDGE_CHECK(std::ssize(sends) == world_.size && sends.size() == receives.size(),
              "a part for each rank");
  RIDGE_CHECK(done(), "one exchange at a time");
  lets_pass_ = lets_pass;
  piece_bytes_ = lets_pass ? kPieceBytes : kMostMessageBytes;
  Reserve(sends, receives);
  sends_ = &sends;
  next_to_ = 1;
  next_byte_ = longest_ = 0;
  for (int shift = 1; shift < world_.size; ++shift) {
    const auto to = static_cast<size_t>((world_.rank + shift) % world_.size);
    longest_ = std::max(longest_, sends[to].size());
  }
  most_sending_ = std::max(most_sending_, FewestSending());
  open_ = sending_ = 0;
  for (int shift = 1; shift < world_.size; ++shift) {
    const int from = (world_.rank + world_.size - shift) % world_.size;
    RIDGE_RETURN_IF_ERROR(PostReceives(from, receives[static_cast<size_t>(from)]));
  }
  return PostSends();
}

void MpiExchange::Reserve(const Sends& sends, const Receives& receives) {
  int64_t requests = 0;
  for (size_t r = 0; r < sends.size(); ++r) {
    requests += CeilDiv(std::ssize(sends[r]), piece_bytes_) +
                CeilDiv(std::ssize(receives[r]), piece_bytes_);
  }
  const int64_t bytes = requests * world_.api.request_bytes;
  const size_t words = static_cast<size_t>(bytes) / sizeof(void*) + 1;
  if (mpi_requests_.size() < words) mpi_requests_.resize(words);
  requests_.clear();
  requests_.reserve(static_cast<size_t>(requests));
}

Status MpiExchange::PostReceives(int from, std::span<std::byte> bytes) {
  return ForEachPiece(bytes, piece_bytes_, [&](std::span<std::byte> piece) {
    const auto count = static_cast<int32_t>(piece.size());
    const auto index = static_cast<int32_t>(requests_.size());
    requests_.push_back({from, count, /*receives=*/true});
    ++open_;
    const int32_t error =
        world_.api.receive(piece.data(), count, from, tag_, mpi_requests_.data(), index);
    return error == 0 ? Status() : world_.Fail("cannot receive", error);
  });
}

// As many pieces as may be sent at a time, to each rank in turn: so all links are in use.
Status MpiExchange::PostSends() {
  while (sends_ != nullptr) {
    for (; next_to_ < world_.size; ++next_to_) {
      const int to = (world_.rank + next_to_) % world_.size;
      const std::span<const std::byte> all = (*sends_)[static_cast<size_t>(to)];
      if (next_byte_ >= all.size()) continue;
      if (lets_pass_ && sending_ >= most_sending_) return Status();
      const size_t count = std::min(all.size() - next_byte_, static_cast<size_t>(piece_bytes_));
      RIDGE_RETURN_IF_ERROR(PostSend(to, all.subspan(next_byte_, count)));
    }
    next_to_ = 1;
    next_byte_ += static_cast<size_t>(piece_bytes_);
    if (next_byte_ >= longest_) sends_ = nullptr;
  }
  return Status();
}

Status MpiExchange::PostSend(int to, std::span<const std::byte> piece) {
  const auto count = static_cast<int32_t>(piece.size());
  const auto index = static_cast<int32_t>(requests_.size());
  requests_.push_back({to, count, /*receives=*/false});
  ++open_;
  ++sending_;
  sent_bytes_ += count;
  const int32_t error = world_.api.send(piece.data(), count, to, tag_, mpi_requests_.data(), index);
  return error == 0 ? Status() : world_.Fail("cannot send", error);
}

Result<bool> MpiExchange::Look() {
  bool moved = false;
  int64_t sent = 0;
  while (open_ > 0) {
    int32_t done = -1, received = 0;
    const int32_t error = world_.api.test(mpi_requests_.data(),
                                          static_cast<int32_t>(requests_.size()), &done, &received);
    if (error != 0) return world_.Fail("cannot exchange", error);
    if (done < 0) break;
    moved = true;
    --open_;
    const Request& request = requests_[static_cast<size_t>(done)];
    if (request.receives) {
      RIDGE_RETURN_IF_ERROR(world_.CheckReceived(request.rank, received, request.bytes));
    } else {
      --sending_;
      ++sent;
      RIDGE_RETURN_IF_ERROR(PostSends());
    }
  }
  if (lets_pass_) Adapt(sent);
  return moved;
}

// As many as end between two looks, and not much more.
void MpiExchange::Adapt(int64_t sent) {
  if (sent >= most_sending_) {
    most_sending_ = std::min(most_sending_ + 1, kMostPiecesAhead);
  } else if (sent == 0) {
    most_sending_ = std::max(most_sending_ - 1, FewestSending());
  }
}

}  // namespace ridge

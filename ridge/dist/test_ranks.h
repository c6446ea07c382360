// For tests: ranks as threads, each of which may be late at any exchange.
#pragma once
#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "ridge/dist/local.h"

namespace ridge {

// Waits a random time before each exchange, urgent or not.
class LateCommunicator : public Communicator {
 public:
  LateCommunicator(Communicator& inner, int most_us)
      : inner_(inner), random_(static_cast<uint32_t>(inner.rank()) + 1), wait_us_(0, most_us) {
    if (inner.urgent() != nullptr)
      urgent_ = std::make_unique<LateCommunicator>(*inner.urgent(), most_us);
  }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Communicator* urgent() override { return urgent_.get(); }
  int64_t sent_bytes() const override { return inner_.sent_bytes(); }
  void SetPatient(bool patient) override { inner_.SetPatient(patient); }
  Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                  const std::vector<std::span<std::byte>>& receives) override {
    std::this_thread::sleep_for(std::chrono::microseconds(wait_us_(random_)));
    return inner_.Exchange(sends, receives);
  }
  Status Begin(const std::vector<std::span<const std::byte>>& sends,
               const std::vector<std::span<std::byte>>& receives) override {
    std::this_thread::sleep_for(std::chrono::microseconds(wait_us_(random_)));
    return inner_.Begin(sends, receives);
  }
  Status Finish() override {
    std::this_thread::sleep_for(std::chrono::microseconds(wait_us_(random_)));
    return inner_.Finish();
  }
  Status Send(int to, int channel, std::span<const std::span<const std::byte>> parts,
              int64_t most_waiting) override {
    std::this_thread::sleep_for(std::chrono::microseconds(wait_us_(random_)));
    return inner_.Send(to, channel, parts, most_waiting);
  }
  Status Receive(int from, int channel, std::span<const std::span<std::byte>> parts) override {
    std::this_thread::sleep_for(std::chrono::microseconds(wait_us_(random_)));
    return inner_.Receive(from, channel, parts);
  }
  Status FinishSends() override { return inner_.FinishSends(); }

 private:
  Communicator& inner_;
  std::mt19937 random_;
  std::uniform_int_distribution<int> wait_us_;
  std::unique_ptr<LateCommunicator> urgent_;
};

// Calls run(communicator) for every rank at the same time; a rank leaves the job when it returns.
inline void RunRanks(int ranks, const std::function<void(Communicator&)>& run,
                     int most_delay_us = 0) {
  std::vector<std::unique_ptr<Communicator>> communicators = MakeLocalCommunicators(ranks);
  std::vector<std::thread> threads;
  for (std::unique_ptr<Communicator>& communicator : communicators) {
    threads.emplace_back([&run, &communicator, most_delay_us] {
      const std::unique_ptr<Communicator> own = std::move(communicator);
      LateCommunicator late(*own, most_delay_us);
      run(late);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ridge

// MpiCommunicator: the ranks of the job that an MPI's launcher started.
//
// Ranks wait with pauses, so that more of them than cores still go on.  The communicator and its
// urgent() share MPI, one thread at a time: whoever looks, looks for both.  What fails for one
// fails for both, and from then on.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ridge/dist/communicator.h"
#include "ridge/dist/launcher.h"
#include "ridge/dist/mpi_exchange.h"
#include "ridge/dist/rank_watcher.h"
#include "ridge/dist/test_delay.h"

namespace ridge {

class MpiCommunicator final : public Communicator {
 public:
  // Joins the launcher's world, once in a process.  Fails with kDevice: no plug-in, an MPI without
  // threads, a world of another size (CheckWorldSize).
  static Result<std::unique_ptr<MpiCommunicator>> Join(const Launcher& launcher);
  // The same by these functions, which must outlive it.
  static Result<std::unique_ptr<MpiCommunicator>> Join(const Launcher& launcher,
                                                       const RidgeMpiApi& api);
  // From now on a rank that keeps the others waiting for `limit_s` without reason ends the job:
  // Exchange fails with kUnavailable and names it, and so does late().  Called by all ranks, after
  // Join.  `tell` takes a line for the user, from another thread.  Fails as Exchange does.
  Status Watch(double limit_s, std::function<void(const std::string&)> tell);

  // Leaves the world, and waits until the other ranks do.
  ~MpiCommunicator() override;

  int rank() const override { return world_.rank; }
  int size() const override { return world_.size; }
  // Fails with kUnavailable when MPI does, and when a rank sends another number of bytes than is
  // expected of it.  The world is of no use then: Abort.
  Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                  const std::vector<std::span<std::byte>>& receives) override {
    return ExchangeIn(usual_, sends, receives);
  }
  Status Begin(const std::vector<std::span<const std::byte>>& sends,
               const std::vector<std::span<std::byte>>& receives) override {
    return BeginIn(usual_, sends, receives);
  }
  Status Finish() override { return FinishIn(usual_); }
  Communicator* urgent() override { return &urgent_; }
  // Messages are for one thread, while no exchange is under way.
  Status Send(int to, int channel, std::span<const std::span<const std::byte>> parts,
              int64_t most_waiting) override;
  Status Receive(int from, int channel, std::span<const std::span<std::byte>> parts) override;
  Status FinishSends() override;
  void SetPatient(bool patient) override { usual_.patient = patient; }
  // All waits leave the core to others, whatever SetPatient() says: of ranks that share cores.
  void ShareCores() { shares_cores_ = true; }
  int64_t sent_bytes() const override;
  void Tell(const RankDoing& doing) override {
    if (watcher_ != nullptr) watcher_->Tell(doing);
  }
  void Name(const char* collective) override { NameOf(usual_, collective); }
  void Enter(int64_t bytes) override {
    if (watcher_ != nullptr) watcher_->Enter(bytes);
  }
  void Leave() override {
    if (watcher_ != nullptr) watcher_->Leave();
  }

  // Whether a late rank ended the job.
  bool late() const { return watcher_ != nullptr && watcher_->ends(); }
  const std::string& library() const { return world_.library; }  // "Open MPI 4.1.4"
  int64_t join_bytes() const { return join_bytes_; }  // of the process's memory: Join() took them

  // Ends all ranks, this one with them: after a failure the others would wait for ever.
  [[noreturn]] void Abort(int exit_code);

  // The exit code of a job that a late rank ended.
  static constexpr int kLateExitCode = 74;

 private:
  // What is kept for this communicator, and for the urgent one.
  struct Channel {
    Channel(const MpiWorld& world, int tag, RankWatcher::Channel watched)
        : exchange(world, tag), watched(watched) {}
    MpiExchange exchange;
    const RankWatcher::Channel watched;
    TestDelay delay;
    bool patient = false;
    int64_t bytes = 0;  // of the exchange that began
  };
  class Urgent final : public Communicator {
   public:
    explicit Urgent(MpiCommunicator& all) : all_(all) {}
    int rank() const override { return all_.rank(); }
    int size() const override { return all_.size(); }
    Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                    const std::vector<std::span<std::byte>>& receives) override {
      return all_.ExchangeIn(all_.passing_, sends, receives);
    }
    Status Begin(const std::vector<std::span<const std::byte>>& sends,
                 const std::vector<std::span<std::byte>>& receives) override {
      return all_.BeginIn(all_.passing_, sends, receives);
    }
    Status Finish() override { return all_.FinishIn(all_.passing_); }
    int64_t sent_bytes() const override { return all_.sent_bytes(); }
    void Tell(const RankDoing& doing) override { all_.Tell(doing); }
    void Name(const char* collective) override { all_.NameOf(all_.passing_, collective); }

   private:
    MpiCommunicator& all_;
  };

  explicit MpiCommunicator(const RidgeMpiApi& api) : world_{api, "", 0, 0} {}
  Status JoinWorld(const Launcher& launcher);
  // What MPI keeps for a pair of ranks is there before a plan counts the memory of the process.
  Status MakeConnections();
  void NameOf(Channel& channel, const char* collective);
  Status ExchangeIn(Channel& channel, const std::vector<std::span<const std::byte>>& sends,
                    const std::vector<std::span<std::byte>>& receives);
  Status BeginIn(Channel& channel, const std::vector<std::span<const std::byte>>& sends,
                 const std::vector<std::span<std::byte>>& receives);
  Status FinishIn(Channel& channel);
  Status WaitFor(Channel& channel);
  Result<bool> Look();
  Status Late();

  size_t FreeMessage();
  Status Progress(int& tests);
  int64_t Waiting(int to, int channel) const;

  MpiWorld world_;
  bool joined_ = false;
  bool shares_cores_ = false;
  int64_t sent_in_messages_ = 0, join_bytes_ = 0;
  mutable std::mutex mutex_;  // of MPI, and of what follows
  Channel usual_{world_, kUsualTag, RankWatcher::Channel::kUsual};
  Channel passing_{world_, kUrgentTag, RankWatcher::Channel::kUrgent};
  Status failed_;
  Urgent urgent_{*this};
  // A request of Send or Receive: a part of a message, or a piece of one.
  struct Message {
    int rank = 0, channel = 0;
    int32_t bytes = 0;
    int64_t number = 0;  // of the message, for sends
    bool receives = false, done = true;
  };
  std::vector<Message> messages_;
  std::vector<void*> mpi_messages_;  // room for their requests
  int64_t sent_messages_ = 0;
  std::unique_ptr<RankWatcher> watcher_;  // null: nobody looks

  static constexpr int kUsualTag = 1, kUrgentTag = 2, kFirstChannelTag = 3;
};

}  // namespace ridge

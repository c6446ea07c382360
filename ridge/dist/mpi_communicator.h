// MpiCommunicator: the ranks of the job that an MPI's launcher started.
//
// Ranks wait with pauses, so that more of them than cores still go on.  A message that MPI could
// not count goes in pieces.  Nothing is allocated once the largest exchange has been made.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/dist/communicator.h"
#include "ridge/dist/launcher.h"
#include "ridge/dist/mpi_abi.h"
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

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  // Fails with kUnavailable when MPI does, and when a rank sends another number of bytes than is
  // expected of it.  The world is of no use then: Abort.
  Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                  const std::vector<std::span<std::byte>>& receives) override;
  Status Send(int to, int channel, std::span<const std::span<const std::byte>> parts,
              int64_t most_waiting) override;
  Status Receive(int from, int channel, std::span<const std::span<std::byte>> parts) override;
  Status FinishSends() override;
  void SetPatient(bool patient) override { patient_ = patient; }
  // All waits leave the core to others, whatever SetPatient() says: of ranks that share cores.
  void ShareCores() { shares_cores_ = true; }
  int64_t sent_bytes() const override { return sent_bytes_; }
  void Tell(const RankDoing& doing) override {
    if (watcher_ != nullptr) watcher_->Tell(doing);
  }
  void Name(const char* collective) override;

  // Whether a late rank ended the job.
  bool late() const { return watcher_ != nullptr && watcher_->ends(); }
  const std::string& library() const { return library_; }  // "Open MPI 4.1.4"
  int64_t join_bytes() const { return join_bytes_; }  // of the process's memory: Join() took them

  // Ends all ranks, this one with them: after a failure the others would wait for ever.
  [[noreturn]] void Abort(int exit_code);

  // The exit code of a job that a late rank ended.
  static constexpr int kLateExitCode = 74;

 private:
  explicit MpiCommunicator(const RidgeMpiApi& api) : api_(api) {}
  Status JoinWorld(const Launcher& launcher);
  // What MPI keeps for a pair of ranks is there before a plan counts the memory of the process.
  Status MakeConnections();
  Status Fail(const char* what, int32_t error) const;
  void Reserve(int64_t requests);
  Status PostReceives(int from, std::span<std::byte> bytes);
  Status PostSends(int to, std::span<const std::byte> bytes);
  Status Move(const std::vector<std::span<const std::byte>>& sends,
              const std::vector<std::span<std::byte>>& receives);
  Status WaitForAll();

  size_t FreeMessage();
  Status Progress(int& tests);
  int64_t Waiting(int to, int channel) const;

  struct Request {
    int rank = 0;
    int32_t bytes = 0;
    bool receives = false;
  };

  const RidgeMpiApi& api_;
  std::string library_;
  int rank_ = 0, size_ = 0;
  bool joined_ = false;
  bool patient_ = false, shares_cores_ = false;
  int64_t sent_bytes_ = 0, join_bytes_ = 0;
  std::vector<Request> requests_;    // of the exchange that is under way
  std::vector<void*> mpi_requests_;  // room for theirs, as MPI has them
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
  TestDelay delay_;
  std::unique_ptr<RankWatcher> watcher_;  // null: nobody looks
};

}  // namespace ridge

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

namespace ridge {

class MpiCommunicator final : public Communicator {
 public:
  // Joins the launcher's world, once in a process.  Fails with kDevice: no plug-in, an MPI without
  // threads, a world of another size (CheckWorldSize).
  static Result<std::unique_ptr<MpiCommunicator>> Join(const Launcher& launcher);
  // The same by these functions, which must outlive it.
  static Result<std::unique_ptr<MpiCommunicator>> Join(const Launcher& launcher,
                                                       const RidgeMpiApi& api);
  // Leaves the world, and waits until the other ranks do.
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  // Fails with kFailed when MPI does, and when a rank sends another number of bytes than is
  // expected of it.  The world is of no use then: Abort.
  Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                  const std::vector<std::span<std::byte>>& receives) override;
  int64_t sent_bytes() const override { return sent_bytes_; }

  const std::string& library() const { return library_; }  // "Open MPI 4.1.4"
  int64_t join_bytes() const { return join_bytes_; }  // of the process's memory: Join() took them

  // Ends all ranks, this one with them: after a failure the others would wait for ever.
  [[noreturn]] void Abort(int exit_code);

 private:
  explicit MpiCommunicator(const RidgeMpiApi& api) : api_(api) {}
  Status JoinWorld(const Launcher& launcher);
  // What MPI keeps for a pair of ranks is there before a plan counts the memory of the process.
  Status MakeConnections();
  Status Fail(const char* what, int32_t error) const;
  void Reserve(int64_t requests);
  Status PostReceives(int from, std::span<std::byte> bytes);
  Status PostSends(int to, std::span<const std::byte> bytes);
  Status WaitForAll();

  struct Request {
    int rank = 0;
    int32_t bytes = 0;
    bool receives = false;
  };

  const RidgeMpiApi& api_;
  std::string library_;
  int rank_ = 0, size_ = 0;
  bool joined_ = false;
  int64_t sent_bytes_ = 0, join_bytes_ = 0;
  std::vector<Request> requests_;    // of the exchange that is under way
  std::vector<void*> mpi_requests_;  // room for theirs, as MPI has them
};

}  // namespace ridge

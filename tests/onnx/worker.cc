// Each worker process takes a run of cases and writes a line for each result; when it dies, the
// case that it was at has failed and a new worker goes on behind it.
#include "tests/onnx/worker.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace ridge {
namespace {

struct Worker {
  pid_t pid = -1;
  int fd = -1;
  std::vector<size_t> cases;  // that it shall run
  size_t done = 0;
  std::string buffer;
};

std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  return text;
}

std::string Encode(const CaseResult& result) {
  return fmt::format("{}\t{}\t{}\t{}\n", static_cast<int>(result.outcome), result.standard ? 1 : 0,
                     OneLine(result.op), OneLine(result.text));
}

CaseResult Decode(const std::string& line) {
  std::istringstream stream(line);
  std::string outcome, standard;
  CaseResult result;
  std::getline(stream, outcome, '\t');
  std::getline(stream, standard, '\t');
  std::getline(stream, result.op, '\t');
  std::getline(stream, result.text);
  result.outcome = static_cast<Outcome>(std::atoi(outcome.c_str()));
  result.standard = standard == "1";
  return result;
}

class Pool {
 public:
  Pool(const std::vector<OnnxCase>& cases, const std::function<CaseResult(const OnnxCase&)>& run,
       int seconds)
      : cases_(cases), run_(run), seconds_(seconds), results_(cases.size()) {}

  std::vector<CaseResult> Run(int jobs) {
    // Dealt out one by one, so that slow families are shared.
    std::vector<Worker> workers(static_cast<size_t>(std::max(jobs, 1)));
    for (size_t i = 0; i < cases_.size(); ++i) workers[i % workers.size()].cases.push_back(i);
    for (Worker& worker : workers) Start(worker);
    while (Wait(workers)) {
    }
    return std::move(results_);
  }

 private:
  void Start(Worker& worker) {
    if (worker.done == worker.cases.size()) return;
    int ends[2];
    RIDGE_CHECK(::pipe(ends) == 0, std::strerror(errno));
    worker.pid = ::fork();
    RIDGE_CHECK(worker.pid >= 0, std::strerror(errno));
    if (worker.pid == 0) {
      ::close(ends[0]);
      Work(worker, ends[1]);
    }
    ::close(ends[1]);
    worker.fd = ends[0];
    worker.buffer.clear();
  }

  // Ends this process after so many seconds of its own work, whatever else the machine does; the
  // alarm, ten times as late, is for a case that waits and does nothing.
  void SetLimits() const {
    const itimerval work = {.it_interval = {0, 0}, .it_value = {seconds_, 0}};
    ::setitimer(ITIMER_PROF, &work, nullptr);
    ::alarm(static_cast<unsigned>(10 * seconds_));
  }

  // The worker's own process.
  [[noreturn]] void Work(const Worker& worker, int fd) {
    for (size_t i = worker.done; i < worker.cases.size(); ++i) {
      SetLimits();
      CaseResult result;
      try {
        result = run_(cases_[worker.cases[i]]);
      } catch (const std::exception& error) {
        result.text = fmt::format("threw: {}", error.what());
      }
      const std::string line = Encode(result);
      if (::write(fd, line.data(), line.size()) < 0) ::_exit(1);
    }
    ::_exit(0);
  }

  // Reads what the workers have to say; false when all are done.
  bool Wait(std::vector<Worker>& workers) {
    std::vector<pollfd> polls;
    std::vector<Worker*> polled;
    for (Worker& worker : workers) {
      if (worker.fd < 0) continue;
      polls.push_back({worker.fd, POLLIN, 0});
      polled.push_back(&worker);
    }
    if (polls.empty()) return false;
    ::poll(polls.data(), polls.size(), -1);
    for (size_t i = 0; i < polls.size(); ++i) {
      if (polls[i].revents != 0) Read(*polled[i]);
    }
    return true;
  }

  void Read(Worker& worker) {
    char bytes[4096];
    const ssize_t count = ::read(worker.fd, bytes, sizeof bytes);
    if (count <= 0) {
      End(worker);
      return;
    }
    worker.buffer.append(bytes, static_cast<size_t>(count));
    for (size_t end; (end = worker.buffer.find('\n')) != std::string::npos;) {
      results_[worker.cases[worker.done++]] = Decode(worker.buffer.substr(0, end));
      worker.buffer.erase(0, end + 1);
    }
  }

  void End(Worker& worker) {
    int status = 0;
    ::waitpid(worker.pid, &status, 0);
    ::close(worker.fd);
    worker.fd = -1;
    if (worker.done == worker.cases.size()) return;
    CaseResult& result = results_[worker.cases[worker.done++]];
    result.text = !WIFSIGNALED(status) ? fmt::format("ended the program with {}", status)
                  : WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGPROF
                      ? fmt::format("took more than {} s", seconds_)
                      : fmt::format("crashed: {}", ::strsignal(WTERMSIG(status)));
    Start(worker);
  }

  const std::vector<OnnxCase>& cases_;
  const std::function<CaseResult(const OnnxCase&)>& run_;
  int seconds_;
  std::vector<CaseResult> results_;
};

}  // namespace

std::vector<CaseResult> RunInProcesses(const std::vector<OnnxCase>& cases,
                                       const std::function<CaseResult(const OnnxCase&)>& run,
                                       int jobs, int seconds) {
  return Pool(cases, run, seconds).Run(jobs);
}

}  // namespace ridge

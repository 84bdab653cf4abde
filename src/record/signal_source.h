#pragma once
// Signals as something to wait for, together with a descriptor.
#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace hotlap {

struct Signal {
  int number = 0;
  int code = 0;  // si_code
  pid_t sender = 0;
};

// Works without a descriptor of its own too (the system may have none left), but then looks at the other one at
// intervals only. One thread; all signals are blocked before.
class SignalSource {
 public:
  SignalSource();
  ~SignalSource();
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;

  // Until there is a signal, `other_fd` (−1: none) has something to read, or the time is over. True when it is worth
  // looking at `other_fd`.
  bool wait(std::int64_t timeout_ns, int other_fd);
  std::optional<Signal> next();

 private:
  int fd_;
  std::optional<Signal> taken_;  // without a descriptor: by wait()
};

}  // namespace hotlap

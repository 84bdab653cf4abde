// A hostile ring: the input is the file. It is polled as the recorder would, with a command in between.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/format.h"
#include "wire/ring_reader.h"
#include "wire/ring_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > (std::size_t{1} << 20)) return 0;
  const std::string folder = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  const std::string path = hotlap::format("{}/hotlap-fuzz-{}.ring", folder, ::getpid());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  ::close(fd);
  auto reader = hotlap::RingReader::open(path, ::geteuid());
  if (reader.ok()) {
    std::string text;
    hotlap::RecordText visitor(text);
    for (int poll = 0; poll < 4 && reader->poll(visitor).ok(); ++poll) {
      if (poll == 1) (void)reader->send(hotlap::HookCommand::kPing, 0).ok();
    }
    if (reader->backlog_bytes() > reader->identity().data_bytes) std::abort();
  }
  ::unlink(path.c_str());
  return 0;
}

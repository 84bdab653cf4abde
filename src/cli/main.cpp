// The program: its arguments, its streams and the last resort for what libraries throw.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <ostream>
#include <string>
#include <vector>

#include "base/descriptor_stream.h"
#include "cli/dispatch.h"
#include "cli/registry.h"

namespace hotlap {
namespace {

int run_program(std::vector<std::string> words) {
  DescriptorBuffer out_buffer(STDOUT_FILENO);
  DescriptorBuffer err_buffer(STDERR_FILENO);
  std::ostream out(&out_buffer);
  std::ostream err(&err_buffer);
  err << std::unitbuf;
  Streams streams{.out = out,
                  .err = err,
                  .out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
                  .err_is_terminal = ::isatty(STDERR_FILENO) == 1};
  const int code = dispatch(all_commands(), words, streams);
  out.flush();
  // A full disk is a failure that scripts must see; a reader that left (`| head`) is not.
  if (out_buffer.error_number() == 0 || out_buffer.error_number() == EPIPE) return code;
  err << "hotlap: " << errno_error("cannot write the output", out_buffer.error_number()).message << '\n';
  return code == kExitSuccess ? kExitFailed : code;
}

}  // namespace
}  // namespace hotlap

int main(int argc, char** argv) {
  try {
    return hotlap::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hotlap: internal error: %s\n", error.what());
  } catch (...) {
    std::fputs("hotlap: internal error: unknown exception\n", stderr);
  }
  return hotlap::kExitFailed;
}

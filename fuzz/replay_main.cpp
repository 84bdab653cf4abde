// main of a fuzz target outside the `fuzz` preset: runs every file below the folders (or the files) given, once each.
//
//   NAME_fuzz [--mutate COUNT [--seed N]] FILE|FOLDER…    then COUNT inputs made of them at random
//
// No coverage leads the mutations, as libFuzzer's does; but it runs anywhere. An input that crashes is left in
// crash.bin.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> inputs_of(const std::filesystem::path& given) {
  if (!std::filesystem::is_directory(given)) return {given};
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(given)) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

using Input = std::vector<std::uint8_t>;

// What a signal handler can still reach: the input under way.
const std::uint8_t* current_data = nullptr;
std::size_t current_size = 0;

void on_crash(int signal_number) {
  const int fd = ::open("crash.bin", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd >= 0) {
    [[maybe_unused]] const ::ssize_t written = ::write(fd, current_data, current_size);
    ::close(fd);
  }
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

void run(const Input& input) {
  current_data = input.data();
  current_size = input.size();
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

class Mutator {
 public:
  Mutator(const std::vector<Input>& seeds, std::uint64_t seed) : seeds_(seeds), random_(seed) {}

  Input next() {
    Input input = seeds_[below(seeds_.size())];
    for (std::size_t n = 1 + below(6); n > 0; --n) change(input);
    constexpr std::size_t kBytesMax = std::size_t{64} << 10U;
    if (input.size() > kBytesMax) input.resize(kBytesMax);
    return input;
  }

 private:
  // Of the texts that are parsed here: brackets, quotes, numbers at their limits, bytes that are no text.
  static constexpr std::array<std::string_view, 30> kWords{"{",
                                                           "}",
                                                           "[",
                                                           "]",
                                                           "\"",
                                                           ",",
                                                           ":",
                                                           "\\",
                                                           "\n",
                                                           "-",
                                                           "0",
                                                           "1e9",
                                                           "nan",
                                                           "inf",
                                                           "null",
                                                           "\xFF",
                                                           "\xC3",
                                                           "\x01",
                                                           "}\n,{",
                                                           "\"ph\":\"X\"",
                                                           "\"ts\":",
                                                           "\"dur\":",
                                                           "\"name\":\"",
                                                           "\"args\":{",
                                                           "\"traceEvents\":[",
                                                           "18446744073709551615",
                                                           "-9223372036854775808",
                                                           "\"cat\":\"kernel\"",
                                                           "\"pid\":1",
                                                           "\\u0000"};

  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : static_cast<std::size_t>(random_() % limit); }
  std::ptrdiff_t place(const Input& input) { return static_cast<std::ptrdiff_t>(below(input.size() + 1)); }

  void change(Input& input) {
    const std::ptrdiff_t at = place(input);
    const std::size_t left = input.size() - static_cast<std::size_t>(at);
    switch (below(8)) {
      case 0:
        if (left > 0) input[static_cast<std::size_t>(at)] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 1:
        if (left > 0) input[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(below(256));
        break;
      case 2: {  // a piece goes
        const std::size_t length = std::min(left, 1 + below(below(4) == 0 ? 400 : 8));
        input.erase(input.begin() + at, input.begin() + at + static_cast<std::ptrdiff_t>(length));
        break;
      }
      case 3: {  // a piece again
        const std::size_t length = std::min(left, 1 + below(300));
        const Input piece(input.begin() + at, input.begin() + at + static_cast<std::ptrdiff_t>(length));
        input.insert(input.begin() + place(input), piece.begin(), piece.end());
        break;
      }
      case 4:  // the end goes
        if (below(4) == 0) input.resize(static_cast<std::size_t>(at));
        break;
      case 5: {  // of another one
        const Input& other = seeds_[below(seeds_.size())];
        const std::size_t from = below(other.size());
        const std::size_t length = std::min(other.size() - from, 1 + below(500));
        const auto begin = other.begin() + static_cast<std::ptrdiff_t>(from);
        input.insert(input.begin() + at, begin, begin + static_cast<std::ptrdiff_t>(length));
        break;
      }
      default: {
        const std::string_view word = kWords[below(kWords.size())];
        input.insert(input.begin() + at, word.begin(), word.end());
      }
    }
  }

  const std::vector<Input>& seeds_;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<Input> inputs;
  std::uint64_t mutations = 0;
  std::uint64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if ((word == "--mutate" || word == "--seed") && i + 1 < argc) {
      (word == "--mutate" ? mutations : seed) = std::strtoull(argv[++i], nullptr, 10);
      continue;
    }
    for (const auto& path : inputs_of(argv[i])) {
      std::ifstream file(path, std::ios::binary);
      if (!file) {
        std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
        return 1;
      }
      const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      inputs.emplace_back(bytes.begin(), bytes.end());
    }
  }
  for (const int fatal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) ::signal(fatal, &on_crash);
  for (const Input& input : inputs) run(input);
  std::printf("%zu inputs replayed\n", inputs.size());
  if (inputs.empty()) return 1;  // a corpus that is not there is a defect
  Mutator mutator(inputs, seed);
  for (std::uint64_t i = 0; i < mutations; ++i) run(mutator.next());
  if (mutations > 0) std::printf("%llu inputs made of them\n", static_cast<unsigned long long>(mutations));
  return 0;
}

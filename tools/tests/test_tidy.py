"""The naming rules are on and mean what STYLE.md says. (A list of checks can switch one off further down, unseen.)"""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIDY = shutil.which("clang-tidy-16")

GOOD = """
namespace hotlap {
constexpr int kLimit = 3;
struct ParamDesc { int size_bytes = 0; };
enum class Lane { kFast, kMayBlock };
struct CollectorSpec { int n; };
extern constinit const CollectorSpec collector_load{1};
class Reader {
 public:
  explicit Reader(int fd) : fd_(fd) {}
  int file_number() const { return fd_; }
 private:
  static constexpr int kMax = 4;
  int fd_;
};
template <class T>
T twice(T value) {
  const T result = value + value;
  const auto add = [](auto a, auto b) { return a + b; };
  return add(result, T{});
}
}  // namespace hotlap
"""
BAD = {
    "function 'readAll'": "int readAll() { return 1; }",
    "class 'block_reader'": "class block_reader {};",
    "private member 'fd'": "class Reader { public: explicit Reader(int n) : fd(n) {} private: int fd; };",
    "enum constant 'fast'": "enum class Lane { fast };",
    "constexpr variable 'limit'": "constexpr int limit = 3;",
    "parameter 'pathName'": "int size(int pathName) { return pathName; }",
    "public member 'sizeBytes'": "struct Desc { int sizeBytes = 0; };",
}


@unittest.skipUnless(TIDY, "clang-tidy-16 is not installed (tools/setup.sh --developer)")
class Tidy(unittest.TestCase):
    def findings(self, code: str) -> list:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "src", "x.cpp")
            path.parent.mkdir()
            path.write_text(code)
            command = [TIDY, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", str(path), "--", "-std=c++20"]
            done = subprocess.run(command, capture_output=True, text=True)
            return re.findall(r"error: (.*)", done.stdout)

    def test_what_follows_the_rules_passes(self) -> None:
        self.assertEqual(self.findings(GOOD), [])

    def test_each_broken_rule_is_an_error(self) -> None:
        code = "".join(f"namespace n{i} {{ {line} }}\n" for i, line in enumerate(BAD.values()))
        text = "\n".join(self.findings(code))
        for part in BAD:
            self.assertIn(f"invalid case style for {part}", text)


if __name__ == "__main__":
    unittest.main()

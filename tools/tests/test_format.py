"""check.format finds one unformatted file, says how to mend it, mends it, and says when it cannot look."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = "namespace hotlap {\nint one() { return 1; }\n}  // namespace hotlap\n"
BAD = "namespace hotlap {\nint  one( ) {return 1;}\n}  // namespace hotlap\n"


class Format(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("tools", "src"):
            (self.root / name).mkdir()
        shutil.copy(ROOT / "tools" / "check.sh", self.root / "tools")
        shutil.copy(ROOT / ".clang-format", self.root)
        (self.root / "src" / "good.cpp").write_text(GOOD)

    def check(self, *arguments: str, path: "str | None" = None) -> "subprocess.CompletedProcess[str]":
        bash = shutil.which("bash")
        assert bash
        return subprocess.run([bash, str(self.root / "tools" / "check.sh"), "format", *arguments], text=True,
                              env={"PATH": path or "/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": str(self.root.parent)},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    @unittest.skipUnless(shutil.which("clang-format-14"), "clang-format-14 is not installed")
    def test_finds_and_mends(self) -> None:
        self.assertEqual(self.check().returncode, 0)
        (self.root / "src" / "bad.h").write_text(BAD)
        done = self.check()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("src/bad.h:2:", done.stdout)
        self.assertNotIn("good.cpp", done.stdout)
        self.assertIn("mend it with: tools/check.sh format --fix", done.stdout)
        self.assertEqual(self.check("--fix").returncode, 0)
        self.assertEqual((self.root / "src" / "bad.h").read_text(), GOOD)

    @unittest.skipUnless(shutil.which("clang-format-14"), "clang-format-14 is not installed")
    def test_nothing_to_look_at_is_a_failure(self) -> None:
        (self.root / "src" / "good.cpp").unlink()
        self.assertEqual(self.check().returncode, 1)

    def test_says_that_it_is_skipped_where_the_formatter_is_missing(self) -> None:
        tools = self.root / "bin"
        tools.mkdir()
        for name in ("dirname", "git"):
            found = shutil.which(name)
            assert found, name
            (tools / name).symlink_to(found)
        done = self.check(path=str(tools))
        self.assertEqual(done.returncode, 77, done.stdout)
        self.assertIn("SKIPPED: clang-format-14 is not installed", done.stdout)


if __name__ == "__main__":
    unittest.main()

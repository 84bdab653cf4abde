"""tools/setup.sh where stand-ins play apt, dpkg, id and sudo: what it says, and when it stops."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = ("bash", "env", "dirname", "mkdir", "cat", "sed", "sort", "head", "tail", "grep", "mktemp", "rm", "true")


class Setup(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.bin = self.root / "bin"
        self.bin.mkdir()
        for name in COMMANDS:
            found = shutil.which(name)
            assert found, name
            (self.bin / name).symlink_to(found)
        (self.root / "tools").mkdir()
        shutil.copy(TOOLS / "setup.sh", self.root / "tools")
        self.stub("id", "echo 0")
        self.stub("cmake", "echo 'cmake version 3.25.1'")
        self.stub("g++", "echo 12.2.0")
        # Installed is what stands in the file `installed`, one package a line; apt-get install adds to it.
        self.installed = self.root / "installed"
        self.installed.write_text("")
        self.stub("dpkg-query", f'grep -qx -- "${{@: -1}}" {self.installed} && echo -n installed')
        self.stub("apt-cache", 'echo "Package: ${@: -1}"')
        self.apt_log = self.root / "apt.log"
        self.stub("apt-get", f"""
echo "$*" >>{self.apt_log}
for word in "$@"; do
  [ -z "$installing" ] || echo "$word" >>{self.installed}
  [ "$word" = install ] && installing=1
done
exit 0""")

    def stub(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def run_setup(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([str(self.root / "tools" / "setup.sh"), *arguments], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={"PATH": str(self.bin), "TMPDIR": str(self.root)})

    def stops_with(self, part: str) -> None:
        done = self.run_setup()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(part, done.stderr.splitlines()[-1])
        self.assertEqual(done.stdout, "")

    def test_installs_once_and_then_only_looks(self) -> None:
        done = self.run_setup()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("setup: installing with apt: g++ make cmake", done.stderr)
        self.assertIn("python3-torch", self.installed.read_text())
        self.assertEqual((self.root / "build" / "python-for-tests").read_text(), "/usr/bin/python3\n")
        self.apt_log.unlink()
        again = self.run_setup()
        self.assertEqual((again.returncode, again.stderr), (0, "setup: all there (g++ 12.2.0, cmake 3.25.1)\n"))
        self.assertFalse(self.apt_log.exists())

    def test_only_what_is_missing(self) -> None:
        self.run_setup()
        text = self.installed.read_text()
        self.installed.write_text(text.replace("ccache\n", ""))
        self.assertIn("installing with apt: ccache\n", self.run_setup().stderr)

    def without_the_formatter(self) -> None:
        self.run_setup()
        self.installed.write_text(self.installed.read_text().replace("clang-format-14\n", ""))

    def test_the_formatter_of_a_test_is_installed_too(self) -> None:
        self.without_the_formatter()
        self.assertIn("installing with apt: clang-format-14\n", self.run_setup().stderr)
        self.assertIn("clang-format-14\n", self.installed.read_text())

    def test_who_may_not_install_goes_on_without_the_formatter(self) -> None:
        self.without_the_formatter()
        self.stub("id", "echo 1000")
        done = self.run_setup()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("clang-format-14 is not installed (you are not root): what needs it is skipped", done.stderr)

    def test_a_distribution_without_the_formatter_is_asked_once(self) -> None:
        self.without_the_formatter()
        self.stub("apt-cache", "exit 100")
        done = self.run_setup()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("this distribution has no clang-format-14: what needs it is skipped", done.stderr)
        self.assertEqual(self.run_setup().stderr, "setup: all there (g++ 12.2.0, cmake 3.25.1)\n")

    def test_a_formatter_that_cannot_be_had_now_is_tried_again(self) -> None:
        self.without_the_formatter()
        self.stub("apt-cache", "exit 100")
        self.stub("apt-get", 'echo "E: Failed to fetch"; exit 100')
        for _ in range(2):
            done = self.run_setup()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("clang-format-14 cannot be had (E: Failed to fetch): what needs it is skipped", done.stderr)

    def test_other_distributions(self) -> None:
        (self.bin / "apt-get").unlink()
        self.stops_with("neither Debian nor Ubuntu (no apt-get): install by hand what this stands for: g++")

    def test_not_root_and_no_sudo(self) -> None:
        self.stub("id", "echo 1000")
        self.stops_with("not root and no sudo: ask for these to be installed: g++")

    def test_sudo_that_refuses(self) -> None:
        self.stub("id", "echo 1000")
        self.stub("sudo", "exit 1")
        self.stops_with("sudo refuses: ask for these to be installed: g++")

    def test_through_sudo(self) -> None:
        self.stub("id", "echo 1000")
        self.stub("sudo", f'echo sudo >>{self.root}/sudo.log; [ "$1" != -n ] || shift; exec "$@"')
        self.assertEqual(self.run_setup().returncode, 0)
        self.assertIn("g++", self.installed.read_text())
        self.assertIn("sudo", (self.root / "sudo.log").read_text())

    def test_no_network(self) -> None:
        self.stub("apt-get", 'case " $* " in *" update "*) echo "E: Failed to fetch"; exit 100;; esac')
        self.stub("apt-cache", "exit 100")
        self.stops_with("the package lists have no 'g++': no network, or not Debian 12+ / Ubuntu 24.04")

    def test_an_install_that_fails_names_the_reason(self) -> None:
        self.stub("apt-get", 'case " $* " in *" install "*) echo "E: No space left on device"; exit 100;; esac')
        self.stops_with("apt-get could not install them: E: No space left on device")

    def test_an_old_cmake_on_path(self) -> None:
        self.run_setup()
        self.stub("cmake", "echo 'cmake version 3.18.4'")
        self.stops_with("cmake 3.18.4 is on PATH, 3.25 is needed")

    def test_wrong_use(self) -> None:
        self.assertIn("usage", self.run_setup("--everything").stderr)


class Repository(unittest.TestCase):
    def test_every_library_that_cmake_looks_for_has_its_package(self) -> None:
        text = (TOOLS.parent / "cmake" / "Dependencies.cmake").read_text()
        packages = (TOOLS / "setup.sh").read_text()
        for wanted, package in (("sqlite3", "libsqlite3-dev"), ("zstd", "libzstd-dev"), ("isa-l/", "libisal-dev"),
                                ("spdlog", "libspdlog-dev"),
                                ("rapidjson", "rapidjson-dev"), ("CLI/", "libcli11-dev"), ("boost/", "libboost-dev")):
            self.assertIn(wanted, text)
            self.assertIn(package, packages)
        self.assertTrue(os.access(TOOLS / "setup.sh", os.X_OK))


if __name__ == "__main__":
    unittest.main()

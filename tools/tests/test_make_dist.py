"""The tarball and the wheel hold what they should, byte for byte the same each time, and pip installs the wheel."""
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

TOOLS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOOLS))
import check_binary  # noqa: E402
import make_deb  # noqa: E402
import make_dist  # noqa: E402


class MakeDist(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.stage = self.root / "stage"
        hook = self.stage / "share" / "hotlap" / "python"
        (hook / "hotlap").mkdir(parents=True)
        (hook / "hotlap" / "__init__.py").write_text("WHO = 'hook'\n")
        (hook / "hotlap" / "_autoload.py").write_text("import sys\nsys.hotlap_autoload_ran = True\n")
        (hook / "hotlap" / "_bootstrap").mkdir()
        (hook / "hotlap" / "_bootstrap" / "sitecustomize.py").write_text("")
        (self.stage / "bin").mkdir()
        (self.stage / "lib" / "hotlap").mkdir(parents=True)
        shutil.copy("/bin/true", self.stage / "lib" / "hotlap" / "libhotlap_nvtx.so")
        # Any program that needs glibc alone stands in for ours.
        shutil.copy("/bin/true", self.stage / "bin" / "hotlap")

    def pack(self, out: str) -> pathlib.Path:
        command = [sys.executable, "-B", str(TOOLS / "make_dist.py"), str(self.stage), str(self.root / out)]
        environment = dict(os.environ, SOURCE_DATE_EPOCH="1700000000")
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return self.root / out

    def test_the_same_tree_gives_the_same_bytes(self) -> None:
        one, two = self.pack("one"), self.pack("two")
        names = sorted(p.name for p in one.iterdir())
        self.assertEqual(len(names), 3, names)
        for name in names:
            self.assertEqual((one / name).read_bytes(), (two / name).read_bytes(), name)

    def test_tarball(self) -> None:
        path = next(self.pack("out").glob("*.tar.gz"))
        with tarfile.open(path) as archive:
            modes = {m.name.split("/", 1)[1]: m.mode for m in archive.getmembers()}
        self.assertEqual(modes["bin/hotlap"], 0o755)
        self.assertEqual(modes["share/hotlap/python/hotlap/_bootstrap/sitecustomize.py"], 0o644)
        self.assertIn("LICENSE", modes)
        self.assertIn("lib/hotlap/libhotlap_nvtx.so", modes)

    def test_wheel_names_the_oldest_glibc_and_its_record_is_complete(self) -> None:
        path = next(self.pack("out").glob("*.whl"))
        major, minor = check_binary.glibc_version("/bin/true")
        self.assertIn(f"-py3-none-manylinux_{major}_{minor}_", path.name)
        with zipfile.ZipFile(path) as archive:
            record = next(n for n in archive.namelist() if n.endswith("/RECORD"))
            recorded = {line.split(",")[0] for line in archive.read(record).decode().splitlines()}
            self.assertEqual(recorded, set(archive.namelist()))

    def test_pip_installs_it(self) -> None:
        wheel = next(self.pack("out").glob("*.whl"))
        target = self.root / "venv"
        made = subprocess.run([sys.executable, "-m", "venv", str(target)], capture_output=True)
        if made.returncode != 0:
            self.skipTest("this Python has no venv")
        python = str(target / "bin" / "python")
        install = [python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", str(wheel)]
        done = subprocess.run(install, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(subprocess.run([str(target / "bin" / "hotlap")]).returncode, 0)
        self.assertTrue((target / "lib" / "hotlap" / "libhotlap_nvtx.so").is_file())
        code = "import sys; print(hasattr(sys, 'hotlap_autoload_ran'), end=' '); import hotlap; print(hotlap.WHO)"
        for ring_folder, expected in (("", "False hook\n"), ("/nonexistent", "True hook\n")):
            environment = dict(os.environ, HOTLAP_RING_DIR=ring_folder)
            done = subprocess.run([python, "-c", code], capture_output=True, text=True, env=environment)
            self.assertEqual((done.stdout, done.stderr), (expected, ""))

    @unittest.skipIf(shutil.which("dpkg-deb") is None, "no dpkg-deb to read it with")
    def test_the_package_is_one_that_dpkg_reads(self) -> None:
        package = next(self.pack("out").glob("*.deb"))
        major, minor = check_binary.glibc_version("/bin/true")
        field = subprocess.run(["dpkg-deb", "--field", str(package), "Depends"], capture_output=True, text=True)
        self.assertEqual(field.stdout.strip(), f"libc6 (>= {major}.{minor})", field.stderr)
        root = self.root / "unpacked"
        subprocess.run(["dpkg-deb", "--extract", str(package), str(root)], check=True)
        self.assertEqual(subprocess.run([str(root / "usr" / "bin" / "hotlap")]).returncode, 0)
        self.assertTrue((root / "usr" / "share" / "doc" / "hotlap" / "copyright").is_file())
        self.assertTrue((root / "usr" / "lib" / "hotlap" / "libhotlap_nvtx.so").is_file())
        self.assertTrue((root / make_deb.UNIT).is_file())
        listed = subprocess.run(["dpkg-deb", "--contents", str(package)], capture_output=True, text=True, check=True)
        self.assertIn(" root/root ", listed.stdout.splitlines()[0])
        self.assertTrue(all(" ./" in line for line in listed.stdout.splitlines()), listed.stdout)

    @unittest.skipIf(shutil.which("systemd-analyze") is None, "no systemd to ask")
    def test_the_unit_is_one_that_systemd_understands(self) -> None:
        unit = self.root / "hotlap-host.service"
        text = (TOOLS.parent / "packaging" / "hotlap-host.service").read_text()
        unit.write_text(text.replace("/usr/bin/hotlap", "/bin/true"))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
        complaints = [line for line in done.stderr.splitlines() if "hotlap-host" in line]
        self.assertEqual(complaints, [])

    def test_version_is_the_projects(self) -> None:
        self.assertRegex(make_dist.version(), r"^\d+\.\d+\.\d+$")


class CheckBinary(unittest.TestCase):
    def test_a_foreign_library_is_named(self) -> None:
        # The dynamic loader itself needs nothing; Python links libexpat, libz or the like.
        program = os.path.realpath("/usr/bin/python3")
        foreign = [name for name in check_binary.needed(program) if not check_binary.GLIBC.match(name)]
        done = subprocess.run([sys.executable, str(TOOLS / "check_binary.py"), program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1 if foreign else 0)
        for name in foreign:
            self.assertIn(name, done.stdout)

    def test_a_program_that_is_not_there(self) -> None:
        self.assertEqual(check_binary.main(["/nonexistent/hotlap"]), 1)


if __name__ == "__main__":
    unittest.main()

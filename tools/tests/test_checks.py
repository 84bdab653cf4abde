"""The checks find what they are for and nothing else, on trees of a few lines."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import check_layers  # noqa: E402
import check_text  # noqa: E402

LAYERS = "0 base : fmt dlfcn.h\n1 model :\n2 collect :\n3 store : sqlite3.h\n"
H = "#pragma once\n"


def tree(files: dict[str, str]) -> tempfile.TemporaryDirectory:
    folder = tempfile.TemporaryDirectory()
    for name, text in {"layers.txt": LAYERS, **files}.items():
        path = pathlib.Path(folder.name, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


class LayersTest(unittest.TestCase):
    def errors(self, files: dict[str, str]) -> list[str]:
        with tree(files) as root:
            return check_layers.Checker(pathlib.Path(root)).run()

    def assert_clean(self, files: dict[str, str]) -> None:
        self.assertEqual(self.errors(files), [])

    def assert_finds(self, files: dict[str, str], *expected: str) -> None:
        errors = self.errors(files)
        self.assertEqual(len(errors), len(expected), errors)
        for error, part in zip(errors, expected):
            self.assertIn(part, error)

    def test_a_sound_tree_is_clean(self) -> None:
        self.assert_clean({
            "src/base/a.h": H + "#include <vector>\n#include <sys/stat.h>\n",
            "src/base/a.cpp": '#include "base/a.h"\n#include <fmt/core.h>\n#include <unistd.h>\n',
            "src/store/s.cpp": '#include "base/a.h"\n#include <sqlite3.h>\n',
            "src/store/s_test.cpp": '#include <gtest/gtest.h>\n#include <fstream>\nvoid f() { throw 1; }\n',
        })

    def test_rank(self) -> None:
        self.assert_finds({"src/base/a.cpp": '\n#include "model/m.h"\n', "src/model/m.h": H},
                          "src/base/a.cpp:2: base (rank 0) must not include model/m.h (rank 1)")
        self.assert_clean({"src/model/m.cpp": '#include "base/a.h"\n', "src/base/a.h": H})

    def test_unknown_folder_and_bare_name(self) -> None:
        self.assert_finds({"src/extra/a.h": H}, "src/extra/a.h: folder 'extra' is not in layers.txt")
        self.assert_finds({"src/model/a.cpp": '#include "gone.h"\n'}, 'write the path from src: "model/gone.h"')

    def test_third_party_headers(self) -> None:
        self.assert_finds({"src/base/a.h": H + "#include <fmt/core.h>\n"}, "a.h:2: <fmt/core.h>: no third-party")
        self.assert_finds({"src/model/a.cpp": "#include <sqlite3.h>\n"}, "<sqlite3.h> is not for model")
        self.assert_finds({"src/model/a.cpp": "#include <dlfcn.h>\n"}, "<dlfcn.h> is not for model")
        self.assert_finds({"src/model/a.cpp": "#include <zlib.h>\n"}, "<zlib.h> is not for model")
        self.assert_finds({"src/model/a.cpp": "#include <gtest/gtest.h>\n"}, "<gtest/gtest.h> is not for model")
        self.assert_clean({"src/base/format.h": H + "#include <fmt/core.h>\n"})
        self.assert_clean({"src/base/a.cpp": "// #include <sqlite3.h>\n/*\n#include <zlib.h>\n*/\n"})

    def test_every_file_is_listed(self) -> None:
        lists = "hotlap_library(base SOURCES a.cpp HEADERS a.h TESTS a_test.cpp plugins/p_test.cpp)\n"
        files = {"src/base/CMakeLists.txt": lists, "src/base/a.h": H, "src/base/a.cpp": "", "src/base/a_test.cpp": "",
                 "src/base/plugins/p.cpp": "", "src/base/plugins/p_test.cpp": ""}
        self.assert_clean(files)
        self.assert_finds({**files, "src/base/b.h": H}, "src/base/b.h: not listed in src/base/CMakeLists.txt")
        self.assert_finds({**files, "src/base/b_test.cpp": ""}, "src/base/b_test.cpp: not listed")
        self.assert_finds({**files, "src/base/plugins/q_test.cpp": ""}, "src/base/plugins/q_test.cpp: not listed")

    def test_include_cycle(self) -> None:
        self.assert_finds({"src/base/a.h": H + '#include "base/b.h"\n', "src/base/b.h": H + '#include "base/a.h"\n'},
                          "include cycle: base/a.h -> base/b.h -> base/a.h")

    def test_sizes(self) -> None:
        self.assert_finds({"src/base/a.h": H + "\n" * 400}, "401 lines, limit 400")
        self.assert_clean({"src/base/a.h": H + "\n" * 399, "src/base/a.cpp": "\n" * 800})
        self.assert_finds({"src/base/a.cpp": "\n" * 801}, "801 lines, limit 800")
        self.assert_finds({"tests/a.cpp": "\n" * 801}, "tests/a.cpp: 801 lines")
        self.assert_clean({"src/base/a.cpp": "// " + "é" * 117 + "\n"})
        self.assert_finds({"src/base/a.cpp": "// " + "é" * 118 + "\n"}, "a.cpp:1: 121 columns")

    def test_regex(self) -> None:
        self.assert_finds({"src/base/a_test.cpp": "#include <regex>\n"}, "<regex> is not for base", "write a scanner")

    def test_conditional_compilation(self) -> None:
        self.assert_clean({"src/base/a.cpp": "#if 1\n#endif\n"})
        self.assert_finds({"src/model/a.cpp": "#ifdef X\n#endif\n"}, "src/model/a.cpp:1: #ifdef: decide at run time")
        self.assert_finds({"src/model/a.h": "#ifndef A_H\n#define A_H\n#endif\n"}, "macro A_H", "no #pragma once")

    def test_macros(self) -> None:
        self.assert_clean({"src/base/a.h": H + "#define HOTLAP_CHECK(x) x\n#define HOTLAP_LOG_DEBUG(x) x\n"})
        self.assert_finds({"src/base/a.h": H + "#define HOTLAP_MAGIC(x) x\n"}, "a.h:2: macro HOTLAP_MAGIC is not on")
        self.assert_finds({"src/model/a.cpp": "#define HOTLAP_CHECK(x) x\n"}, "macros are defined in base only")
        self.assert_finds({"src/model/a.cpp": "#define MIN(a, b) a\n"}, "macro MIN is not on the list")
        self.assert_clean({"src/model/a.cpp": "#define TOML_EXCEPTIONS 0\n"})

    def test_unfinished_work(self) -> None:
        self.assert_finds({"src/base/a.cpp": "// FIXME\n"}, "a.cpp:1: FIXME")
        self.assert_finds({"src/base/a.cpp": "// TODO: later\n"}, "a TODO needs its issue")
        self.assert_clean({"src/base/a.cpp": "// TODO(#12): later\n"})

    def test_friends(self) -> None:
        self.assert_clean({"src/base/a.h": H + "friend bool operator==(A, A) = default;\n// a friend\n"})
        self.assert_finds({"src/base/a.h": H + "friend class Tester;\n"}, "a.h:2: 'friend'")

    def test_banned_names(self) -> None:
        self.assert_finds({"src/base/a.h": H + "class RunManager {\n"}, "a.h:2: RunManager")
        self.assert_finds({"src/base/a.h": H + "struct Context final {\n"}, "a.h:2: Context")
        self.assert_clean({"src/base/a.h": H + "class Contextual {};\nstruct X509Context;\n"})
        self.assert_finds({"src/base/string_util.h": H}, "name a file after the thing in it")
        self.assert_clean({"src/base/utility_rate.h": H})

    def test_streams_belong_to_base(self) -> None:
        self.assert_clean({"src/base/a.cpp": "#include <fstream>\nstd::ofstream f;\n"})
        self.assert_finds({"src/model/a.cpp": "#include <fstream>\nstd::ifstream f;\n"}, "a.cpp:1", "a.cpp:2")
        self.assert_clean({"src/model/a.cpp": 'auto s = "std::ifstream"; // throw std::ofstream\n'})

    def test_strings_digits_and_raw_strings_do_not_hide_code(self) -> None:
        self.assert_finds({"src/model/a.cpp": "int n = 1'000'000; throw n;\n"}, "'throw'")
        self.assert_finds({"src/model/a.cpp": 'auto s = R"x(")" throw)x"; throw s;\n'}, "'throw'")
        self.assert_clean({"src/model/a.cpp": 'auto s = R"x(\nthrow " \')x"; char q = \'"\'; // throw\n'})

    def test_collectors_start_no_process(self) -> None:
        self.assert_finds({"src/collect/a.cpp": "auto p = popen(x, y);\n"}, "a collector starts no process")
        self.assert_clean({"src/collect/a.cpp": "auto p = cpu.system();\n", "src/store/b.cpp": "auto p = ::fork();\n"})

    def test_exit_status(self) -> None:
        script = str(pathlib.Path(check_layers.__file__))
        with tree({"src/base/a.h": H}) as root:
            self.assertEqual(subprocess.run([sys.executable, script, root]).returncode, 0)
        with tree({"src/base/a.h": ""}) as root:
            done = subprocess.run([sys.executable, script, root], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (1, "src/base/a.h:1: no #pragma once\n"))


class TextTest(unittest.TestCase):
    def errors(self, files: dict[str, str]) -> list[str]:
        with tree(files) as root:
            return check_text.Checker(pathlib.Path(root)).run()

    def test_clean(self) -> None:
        self.assertEqual(self.errors({
            "docs/a.md": "See [b](b.md#part), `[x](gone.md)` and train.py:88.\n", "docs/b.md": "text\n",
            "changes/loader.md": "`hotlap why` names the loader.\n",
            "tests/golden/x.txt": "no newline, /ro" "ot/x "}), [])

    def test_line_pointers_and_links(self) -> None:
        self.assertIn("lines move", self.errors({"docs/a.md": "see src/x.cpp:12\n", "src/x.cpp": "\n"})[0])
        self.assertIn("which is not there", self.errors({"docs/a.md": "[b](gone.md)\n"})[0])

    def test_machine_names(self) -> None:
        self.assertIn("a path of one machine", self.errors({"a.sh": "#!/bin/sh\ncd /wo" "rk/x\n"})[0])
        self.assertIn("registries", self.errors({"a.md": "from py" "pi.org\n"})[0])
        self.assertEqual(self.errors({"a.md": "under ../work/x, ~/work/ and https://www.apache.org/\n"}), [])

    def test_notes(self) -> None:
        self.assertIn("no heading", self.errors({"changes/a.md": "# Title\n"})[0])
        self.assertIn("7 lines", self.errors({"changes/a.md": "x\n" * 7})[0])
        self.assertIn("empty", self.errors({"changes/a.md": ""})[0])

    def test_size_and_shape(self) -> None:
        self.assertIn("limit", self.errors({"a.bin": "x" * (512 * 1024 + 1)})[0])
        self.assertIn("end of the line", self.errors({"a.txt": "x \n"})[0])
        self.assertIn("no newline", self.errors({"a.txt": "x"})[0])
        self.assertIn("not executable", self.errors({"a.sh": "#!/bin/sh\n"})[0])
        self.assertIn("unfinished", self.errors({"a.py": "# FIX" "ME\n"})[0])
        self.assertIn("issue number", self.errors({"a.py": "# TO" "DO\n"})[0])


if __name__ == "__main__":
    unittest.main()

"""A Debian package from an installed tree, with nothing but the standard library: an ar archive of two tarballs."""
import gzip
import hashlib
import io
import pathlib
import tarfile

DEB_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64el"}
UNIT = "usr/lib/systemd/system/hotlap-host.service"


class Entry:
    """A file of an archive."""

    def __init__(self, name: str, content: bytes, executable: bool = False):
        self.name, self.content, self.mode = name, content, 0o755 if executable else 0o644


def tar_gz(entries: list[Entry], when: int, folders: bool = False) -> bytes:
    """The same entries give the same bytes. `folders`: with an entry for each folder on the way, as dpkg wants it."""
    raw = io.BytesIO()
    known: set[str] = set()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT if folders else tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            for folder in reversed(pathlib.PurePosixPath(entry.name).parents) if folders else ():
                if folder.as_posix() not in known:
                    known.add(folder.as_posix())
                    info = tarfile.TarInfo("./" if folder.as_posix() == "." else f"./{folder.as_posix()}/")
                    info.type, info.mode, info.mtime = tarfile.DIRTYPE, 0o755, when
                    info.uname = info.gname = "root"
                    archive.addfile(info)
            info = tarfile.TarInfo(("./" if folders else "") + entry.name)
            info.size, info.mtime, info.mode = len(entry.content), when, entry.mode
            info.uname = info.gname = "root" if folders else ""
            archive.addfile(info, io.BytesIO(entry.content))
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", 9, packed, mtime=when) as target:
        target.write(raw.getvalue())
    return packed.getvalue()


def ar(members: list[tuple[str, bytes]], when: int) -> bytes:
    out = b"!<arch>\n"
    for name, content in members:
        out += f"{name:<16}{when:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        out += content + b"\n" * (len(content) % 2)
    return out


def make_deb(files: list[Entry], control: dict[str, str], when: int) -> bytes:
    """`files` by their places on the machine, without the first slash; `control` without what follows from them."""
    files = sorted(files, key=lambda entry: entry.name)
    fields = dict(control)
    description = fields.pop("Description")
    fields["Installed-Size"] = str(sum(len(entry.content) for entry in files) // 1024 + 1)
    text = "".join(f"{name}: {value}\n" for name, value in fields.items()) + f"Description: {description}\n"
    sums = "".join(f"{hashlib.md5(e.content).hexdigest()}  {e.name}\n" for e in files)
    about = [Entry("control", text.encode()), Entry("md5sums", sums.encode())]
    return ar([("debian-binary", b"2.0\n"), ("control.tar.gz", tar_gz(about, when, folders=True)),
               ("data.tar.gz", tar_gz(files, when, folders=True))], when)

"""Reads and writes ZIPs in memory. What is read is hostile until it has been read: nothing it declares is trusted."""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping

from engine.tools.checking.rulebook import Issues, PackageError, shown
from engine.tools.packing.package_paths import Listing, is_kept, too_many

MEGABYTE = 1_000_000
LARGEST_ARCHIVE = 10 * MEGABYTE
LARGEST_FILE = 10 * MEGABYTE
LARGEST_PACKAGE = 30 * MEGABYTE
"""Bytes: as it is uploaded, one file of it, and all of it once it is unzipped."""
MOST_ENTRIES = 20_000
"""Entries of which the list is read at all; MOST_FILES of them may be kept."""
MOST_RATIO = 100
RATIO_FROM = 1 * MEGABYTE
"""How many times its packed size a file may have, counted from this size on."""

_CHUNK = 64 * 1024
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_UTF_8 = 0x800
_END = b"PK\x05\x06"
_ENTRY = b"PK\x01\x02"
_LARGE_END = 76  # bytes that stand before the end in a ZIP of more than 65,535 entries
_DAMAGED = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, OSError),
    *(ValueError, RuntimeError, OverflowError, LookupError, MemoryError),
)
_NO_ZIP = "This is not a ZIP, or it is damaged; pack the tool's directory as a ZIP and try again."


def read_files(data: bytes) -> dict[str, bytes]:
    """The files of a ZIP under their relative POSIX paths, without what packages leave out; raises PackageError."""
    if _entries(data) > MOST_ENTRIES:
        raise _error("Z-006", too_many(f"{_entries(data):,} entries"))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _files(archive)
    except UnicodeDecodeError as error:
        raise _error("Z-011", "A name in the ZIP is not UTF-8; rename the file.") from error
    except _DAMAGED as error:
        raise _error("Z-001", _NO_ZIP) from error


def write_files(files: Mapping[str, bytes]) -> bytes:
    """The ZIP of these files: the same bytes for the same files, and one that `read_files` takes back."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(filter(is_kept, files)):
            entry = zipfile.ZipInfo(path, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # Unix, wherever this runs
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, files[path], compress_type=_compression(files[path]))
    return target.getvalue()


def _compression(content: bytes) -> int:
    """Deflated, unless that would look like a bomb when it is read again."""
    if len(content) > RATIO_FROM:
        packed = len(zlib.compress(content, 1))
        if len(content) > packed * MOST_RATIO // 2:
            return zipfile.ZIP_STORED
    return zipfile.ZIP_DEFLATED


def _entries(data: bytes) -> int:
    """About how many entries the ZIP lists, told without reading them; zipfile needs seconds for some millions."""
    end = data.rfind(_END, max(0, len(data) - 65_557))
    if end < 0 or end + 16 > len(data):
        return 0
    (size,) = struct.unpack_from("<L", data, end + 12)
    return data.count(_ENTRY, max(0, end - size - _LARGE_END), end)


def _files(archive: zipfile.ZipFile) -> dict[str, bytes]:
    entries = archive.infolist()
    if len(entries) > MOST_ENTRIES:
        raise _error("Z-006", too_many(f"{len(entries):,} entries"))
    listing = Listing()
    kept = _listed(entries, listing)
    _weigh(kept, listing.issues)
    listing.close()
    listing.issues.refuse()
    if not kept:
        raise _error("Z-001", "The ZIP has no files.")
    files, total = {}, 0
    for path, entry in kept.items():
        files[path] = _content(archive, path, entry, LARGEST_PACKAGE - total, listing.issues)
        total += len(files[path])
    listing.issues.refuse()
    return files


def _listed(entries: list[zipfile.ZipInfo], listing: Listing) -> dict[str, zipfile.ZipInfo]:
    kept: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        name = _name(entry, listing.issues)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if name is None:
            continue
        if name.endswith("/") or kind == stat.S_IFDIR:
            listing.directory(name)
            continue
        path = listing.file(name)
        if path is not None and _is_plain(entry, kind, path, listing.issues):
            kept[path] = entry
    return kept


def _name(entry: zipfile.ZipInfo, issues: Issues) -> str | None:
    """The entry's name. Without the UTF-8 flag zipfile reads an old code page; most programs mean UTF-8 even so."""
    name = entry.orig_filename
    if entry.flag_bits & _UTF_8 or name.isascii():
        return name
    try:
        return name.encode("cp437").decode("utf-8")
    except UnicodeError:
        issues.add("Z-011", f"The name {shown(name)!r} is not UTF-8; rename the file.", path=name)
        return None


def _is_plain(entry: zipfile.ZipInfo, kind: int, path: str, issues: Issues) -> bool:
    if kind == stat.S_IFLNK:
        issues.add("Z-005", f"{shown(path)!r} is a link; pack the file it leads to.", path=path)
    elif kind not in (0, stat.S_IFREG):
        issues.add("Z-005", f"{shown(path)!r} is no plain file; remove it.", path=path)
    elif entry.flag_bits & _ENCRYPTED:
        issues.add("Z-002", f"{shown(path)!r} is encrypted; pack it without a password.", path=path)
    elif entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # The others inflate without a bound, so they are not even tried.
        issues.add(
            "Z-012",
            f"{shown(path)!r} is packed by a method that is not taken; pack it with “deflate”.",
            path=path,
        )
    else:
        return True
    return False


def _weigh(kept: Mapping[str, zipfile.ZipInfo], issues: Issues) -> None:
    """Refuses by the sizes the ZIP declares, so that nothing is inflated in vain. The true ones are seen on reading."""
    for path, entry in kept.items():
        if entry.file_size > LARGEST_FILE:
            issues.add("Z-007", file_too_large(path), path=path)
        if is_bomb(entry.file_size, entry.compress_size):
            issues.add("Z-008", _inflates(path), path=path)
    if sum(entry.file_size for entry in kept.values()) > LARGEST_PACKAGE:
        issues.add("Z-007", PACKAGE_TOO_LARGE)


def _content(
    archive: zipfile.ZipFile, path: str, entry: zipfile.ZipInfo, most: int, issues: Issues
) -> bytes:
    """What the file holds; raises PackageError as soon as it is more than a bound, however small it was declared."""
    content = bytearray()
    try:
        with archive.open(entry) as stream:
            # In small pieces: a larger one would be inflated as a whole before it is cut.
            while piece := stream.read(_CHUNK):
                content += piece
                if len(content) > LARGEST_FILE:
                    raise _error("Z-007", file_too_large(path), path)
                if len(content) > most:
                    raise _error("Z-007", PACKAGE_TOO_LARGE)
                if is_bomb(len(content), entry.compress_size):
                    raise _error("Z-008", _inflates(path), path)
    except _DAMAGED:
        issues.add("Z-001", f"{shown(path)!r} is damaged in the ZIP; pack it again.", path=path)
    return bytes(content)


def is_bomb(size: int, packed: int) -> bool:
    return size > RATIO_FROM and size > MOST_RATIO * packed


PACKAGE_TOO_LARGE = (
    f"The files have more than {LARGEST_PACKAGE // MEGABYTE} MB together; "
    "leave out what the tool can load by itself."
)


def file_too_large(path: str) -> str:
    return f"{shown(path)!r} has more than {LARGEST_FILE // MEGABYTE} MB; a file has at most that."


def _inflates(path: str) -> str:
    return f"{shown(path)!r} inflates to more than {MOST_RATIO} times its packed size."


def _error(code: str, message: str, path: str = "") -> PackageError:
    issues = Issues()
    issues.add(code, message, path=path)
    return PackageError(issues.all())

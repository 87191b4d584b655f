"""Packages from ZIPs and directories: what is taken, what is refused, and at what price."""

import io
import json
import os
import stat
import struct
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.tools.package import (
    Package,
    PackageError,
    is_kept,
    name_of_directory,
    new_slug,
    read_archive,
    read_directory,
    starter,
    unpack,
    write_archive,
    write_workflow,
)
from engine.tools.packing import zip_files

TOOL = {"tool.py": b'"""A tool."""\n', "requirements.txt": b"pydantic\n"}


def zipped(files: dict[str, bytes | str], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP as other programs write it, in the order given."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return target.getvalue()


def entries(*infos: tuple[zipfile.ZipInfo, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for info, content in infos:
            archive.writestr(info, content)
    return target.getvalue()


def with_mode(path: str, mode: int, content: bytes = b"x") -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(path)
    info.create_system = 3
    info.external_attr = mode << 16
    return info, content


def refused(data: bytes) -> PackageError:
    with pytest.raises(PackageError) as caught:
        read_archive(data)
    assert all(issue.message and issue.severity == "error" for issue in caught.value.issues)
    return caught.value


def codes(data: bytes) -> list[str]:
    return [issue.rule for issue in refused(data).issues]


# Layouts


def test_files_at_the_root_are_a_template_named_by_the_file() -> None:
    archive = read_archive(zipped(TOOL), filename="C:\\Downloads\\json_reader_abc123 (2).zip")
    assert archive.packages == (Package("json reader", TOOL),)
    assert archive.workflow == ""


def test_a_directory_is_a_template_named_by_it_with_what_is_in_its_directories() -> None:
    files = {f"my_tool/{path}": content for path, content in TOOL.items()}
    archive = read_archive(zipped({"my_tool/": "", **files, "my_tool/data/a.json": "{}"}))
    assert archive.packages == (Package("my tool", {**TOOL, "data/a.json": b"{}"}),)


def test_a_template_is_found_below_a_repositorys_own_files() -> None:
    files = {f"repo-main/my_tool/{path}": content for path, content in TOOL.items()}
    more = {"repo-main/README.md": "", "repo-main/requirements.txt": "ruff"}
    assert read_archive(zipped({**more, **files})).packages == (Package("my tool", TOOL),)


def test_several_directories_with_a_tool_are_several_templates() -> None:
    files = {f"tools/{name}/{path}": TOOL[path] for name in ("b", "a") for path in TOOL}
    del files["tools/b/requirements.txt"]
    packages = read_archive(zipped(files)).packages
    assert [(each.name, sorted(each.files)) for each in packages] == [
        ("a", ["requirements.txt", "tool.py"]),
        ("b", ["tool.py"]),
    ]


def test_a_tool_inside_of_a_template_is_a_file_of_it() -> None:
    files = {**TOOL, "tests/one/tool.py": b"", "tests/one/requirements.txt": b""}
    assert read_archive(zipped(files)).packages == (Package("", files),)


@pytest.mark.parametrize(
    ("files", "kept"),
    [
        (
            {"t/requirements.txt": "pydantic", "t/src/tool.py": ""},
            {"requirements.txt", "src/tool.py"},
        ),
        ({"t/requirements.txt": "pydantic", "t/main.py": ""}, {"requirements.txt", "main.py"}),
        ({"a/b/readme.md": ""}, {"readme.md"}),
        ({"readme.md": ""}, {"readme.md"}),
    ],
)
def test_without_a_tool_there_the_only_directory_is_taken_for_the_rules_to_say_so(
    files: dict[str, bytes | str], kept: set[str]
) -> None:
    (package,) = read_archive(zipped(files)).packages
    assert set(package.files) == kept


def test_several_directories_without_any_tool_are_no_template() -> None:
    assert codes(zipped({"a/x.txt": "", "b/y.txt": ""})) == ["T-001"]


def test_what_systems_and_environments_leave_behind_is_left_out_even_where_it_would_be_refused() -> (
    None
):
    left = {
        "t/.DS_Store": "", "__MACOSX/t/._tool.py": "", "t/__pycache__/tool.cpython-311.pyc": "",
        "t/.venv/lib/x.py": "", "t/.requirements_hash.txt": "", "t/.git/config": "", "t/old.pyc": "",
    }  # fmt: skip
    files = {f"t/{path}": content for path, content in TOOL.items()}
    link = with_mode("t/.venv/bin/python", stat.S_IFLNK | 0o777, b"/usr/bin/python3")
    many = {f"t/.venv/lib/many/{number}.py": "" for number in range(1_500)}
    target = io.BytesIO(zipped({**left, **files, **many}))
    with zipfile.ZipFile(target, "a") as archive:
        archive.writestr(*link)
    assert read_archive(target.getvalue()).packages == (Package("t", TOOL),)


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("tool.py", True), ("data/.keep", True), (".env.example", True), ("venv.py", True),
        (".venv/x", False), ("a/.venv/x", False), ("a/__pycache__/b.pyc", False), ("b.pyc", False),
        (".requirements_hash.txt", False), (".git/HEAD", False), ("._tool.py", False),
    ],
)  # fmt: skip
def test_kept_paths(path: str, kept: bool) -> None:
    assert is_kept(path) is kept


def test_a_zip_within_a_zip_is_only_a_file() -> None:
    inner = zipped({"../x": "", "a": "b" * 1000})
    (package,) = read_archive(zipped({**TOOL, "more.zip": inner})).packages
    assert package.files["more.zip"] == inner


def test_names_in_utf_8_are_read_with_and_without_the_flag_that_says_so() -> None:
    data = zipped({**TOOL, "données.json": "{}"})
    plain = bytearray(data)
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = plain.find(mark)
        while at >= 0:
            (flags,) = struct.unpack_from("<H", plain, at + place)
            struct.pack_into("<H", plain, at + place, flags & ~0x800)
            at = plain.find(mark, at + 1)
    for each in (data, bytes(plain)):
        (package,) = read_archive(each).packages
        assert "données.json" in package.files


# Workflow templates


def workflow(document: object, *slugs: str) -> bytes:
    files = {
        f"studio-data/tool_templates/{slug}/{path}": TOOL[path] for slug in slugs for path in TOOL
    }
    text = document if isinstance(document, bytes | str) else json.dumps(document)
    return zipped({"workflow_template.json": text, **files})


@pytest.mark.parametrize(
    "tools",
    [
        [{"name": "Reader 2", "source_folder_path": "studio-data/tool_templates/reader_abc123"}],
        [{"tool_name": "Reader 2", "slug": "reader_abc123"}],
        {"first": {"name": "Reader 2", "files": {}, "dir": "./tool_templates/reader_abc123/"}},
    ],
)
def test_a_workflow_template_names_its_tools_whatever_its_keys_are(tools: object) -> None:
    document = {"workflow_template": {"name": "Bank desk"}, "tool_templates": tools}
    archive = read_archive(workflow(document, "reader_abc123", "other_x1y2z3"))
    assert archive.workflow == "Bank desk"
    assert {each.name for each in archive.packages} == {"Reader 2", "other"}
    assert all(each.files == TOOL for each in archive.packages)


def test_a_workflow_template_in_a_directory_of_its_own_is_read() -> None:
    files = {
        "flow/workflow_template.json": "[1]",
        "flow/studio-data/tool_templates/a_b/tool.py": "",
    }
    archive = read_archive(zipped(files), filename="my-flow.zip")
    assert (archive.workflow, [each.name for each in archive.packages]) == ("my flow", ["a b"])


@pytest.mark.parametrize(
    ("document", "slugs", "code"),
    [
        ({"tool_templates": [{"name": "A", "source_folder_path": "studio-data/tool_templates/gone_abc123"}]},
         ["here_abc123"], "T-001"),
        ({"tool_templates": [{"name": "A", "slug": "gone_abc123"}]}, ["here_abc123"], "T-001"),
        ({"tool_templates": []}, [], "T-001"),
        ("{no json", ["here_abc123"], "Z-014"),
        (b"\xff\xfe\xff", ["here_abc123"], "Z-014"),
        ("[" * 100_000, ["here_abc123"], "Z-014"),
        ("9" * 10_000, ["here_abc123"], "Z-014"),
    ],
)  # fmt: skip
def test_a_workflow_template_that_says_what_is_not_so_is_refused(
    document: object, slugs: list[str], code: str
) -> None:
    assert codes(workflow(document, *slugs)) == [code]


def test_a_written_workflow_template_is_read_back() -> None:
    packages = {
        "one_abc123": Package("One", TOOL),
        "two_d4e5f6": Package("Two 2", {**TOOL, "a/b": b""}),
    }
    archive = read_archive(write_workflow("Desk é", packages))
    assert archive.workflow == "Desk é"
    assert archive.packages == tuple(packages.values())


# What is no ZIP, or is damaged


def crc_broken() -> bytes:
    data = zipped({"tool.py": "a" * 100}, method=zipfile.ZIP_STORED)
    return data.replace(b"a" * 100, b"a" * 99 + b"b")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"PK", b"PK\x05\x06", b"PK\x05\x06" + bytes(18), b"<html>", b"\x1f\x8b\x08" + bytes(100),
        zipped(TOOL)[:-1], zipped(TOOL)[:60], zipped(TOOL)[40:], crc_broken(),
        zipped({"a/": ""}), zipped({"__MACOSX/x": ""}),
    ],
    ids=range(12),  # the bytes themselves hold the time
)  # fmt: skip
def test_what_is_no_whole_zip_with_files_is_refused(data: bytes) -> None:
    assert codes(data) == ["Z-001"]


def encrypted(path: str, content: bytes, password: bytes) -> bytes:
    """A ZIP with one stored entry in the traditional encryption of the format."""
    table = [0] * 256
    for number in range(256):
        value = number
        for _bit in range(8):
            value = (value >> 1) ^ 0xEDB88320 if value & 1 else value >> 1
        table[number] = value
    keys = [0x12345678, 0x23456789, 0x34567890]

    def turn(byte: int) -> None:
        keys[0] = (keys[0] >> 8) ^ table[(keys[0] ^ byte) & 0xFF]
        keys[1] = ((keys[1] + (keys[0] & 0xFF)) * 134775813 + 1) & 0xFFFFFFFF
        keys[2] = (keys[2] >> 8) ^ table[(keys[2] ^ (keys[1] >> 24)) & 0xFF]

    def hidden(byte: int) -> int:
        mark = (keys[2] | 2) & 0xFFFF
        turn(byte)
        return byte ^ (((mark * (mark ^ 1)) >> 8) & 0xFF)

    for byte in password:
        turn(byte)
    crc = zlib.crc32(content)
    body = bytes(hidden(byte) for byte in bytes(11) + bytes([crc >> 24]) + content)
    name = path.encode()
    common = struct.pack("<HHHHHLLLH", 20, 1, 0, 0, 33, crc, len(body), len(content), len(name))
    local = b"PK\x03\x04" + common + struct.pack("<H", 0) + name + body
    central = (
        b"PK\x01\x02"
        + struct.pack("<H", 20)
        + common
        + struct.pack("<HHHHLL", 0, 0, 0, 0, 0, 0)
        + name
    )
    end = struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, 1, 1, len(central), len(local), 0)
    return local + central + end


def test_an_encrypted_zip_is_refused() -> None:
    data = encrypted("tool.py", b"pass\n", b"secret")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:  # it is one: the password opens it
        assert archive.read("tool.py", pwd=b"secret") == b"pass\n"
    assert codes(data) == ["Z-002"]


@pytest.mark.parametrize("flag", [0x1, 0x40, 0x2000])
def test_a_flag_of_encryption_is_enough(flag: int) -> None:
    data = bytearray(zipped(TOOL))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        struct.pack_into("<H", data, data.find(mark) + place, flag)
    assert codes(bytes(data)) == ["Z-002"]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_inflate_without_a_bound_are_refused(method: int) -> None:
    assert codes(zipped(TOOL, method=method)) == ["Z-012", "Z-012"]


# Paths that are refused


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../tool.py", "Z-003"), ("a/../../etc/passwd", "Z-003"), ("a/..", "Z-003"), ("../", "Z-003"),
        ("__MACOSX/../x", "Z-003"), (".venv/../../x", "Z-003"),
        ("/etc/passwd", "Z-004"), ("//host/share", "Z-004"), ("C:/x", "Z-004"), ("c:x", "Z-004"),
        ("..\\x", "Z-004"), ("a\\b.py", "Z-004"),
        ("tool.py\n", "Z-011"), ("a\tb", "Z-011"), ("a\x1b[2Jb", "Z-011"), ("a\u202eyp.b", "Z-011"),
        ("x" * 256, "Z-011"), ("é" * 128, "Z-011"), ("/".join(["x" * 100] * 6), "Z-011"),
        ("/".join("abcdefghijkl"), ""), ("/".join("abcdefghijklm"), "Z-009"),
    ],
)  # fmt: skip
def test_paths(path: str, code: str) -> None:
    data = zipped({**TOOL, path: "x"})
    if not code:
        read_archive(data)
        return
    (issue,) = refused(data).issues
    assert issue.rule == code
    assert issue.message.isprintable()
    assert issue.path.isprintable()


def test_a_name_with_a_null_byte_is_refused_and_not_cut_there() -> None:
    data = zipped({**TOOL, "evilXpy": "x"}).replace(b"evilXpy", b"evil\0py")
    assert codes(data) == ["Z-011"]


def test_a_name_that_is_not_utf_8_is_refused() -> None:
    flagged = zipped({"töol.py": "x"}).replace("ö".encode(), b"\xc3\x28")
    assert codes(flagged) == ["Z-011"]
    unflagged = zipped({"tXol.py": "x"}).replace(b"tXol", b"t\xf6ol")
    assert codes(unflagged) == ["Z-011"]


@pytest.mark.parametrize(
    "kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK]
)
def test_links_and_special_files_are_refused(kind: int) -> None:
    (issue,) = refused(entries(with_mode("a/secrets", kind | 0o777, b"/etc/passwd"))).issues
    assert (issue.rule, issue.path) == ("Z-005", "a/secrets")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "paths",
    [
        ("tool.py", "tool.py"), ("tool.py", "Tool.py"), ("a/tool.py", "A/tool.PY"), ("tool.py", "./tool.py"),
        ("a", "a/b"), ("a/b", "a"), ("a/b/c", "A"), ("a/", "a"), ("e\u0301", "\u00e9"), ("straße", "STRASSE"),
    ],
)  # fmt: skip
def test_a_path_that_is_there_twice_is_refused(paths: tuple[str, ...]) -> None:
    data = entries(*((zipfile.ZipInfo(path), b"") for path in paths))
    assert codes(data) == ["Z-010"]


def test_a_directory_that_is_listed_twice_is_none_too_many() -> None:
    data = entries(*((zipfile.ZipInfo(path), b"") for path in ("a/", "a/tool.py", "a//b", "A/c")))
    assert set(read_archive(data).packages[0].files) == {"tool.py", "b"}


def test_all_that_is_wrong_is_said_at_once_and_long_lists_are_counted() -> None:
    files = {f"../{number}": "" for number in range(300)}
    found = refused(zipped({**files, "/etc/passwd": "", "a\nb": "", "tool.py": ""})).issues
    assert {issue.rule for issue in found} == {"Z-003", "Z-004", "Z-011"}
    assert [issue.message for issue in found if issue.rule == "Z-003"][-1] == "280 more like this."
    assert len(found) == 23


# Too much


def test_a_hundred_thousand_entries_are_refused_without_reading_them() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for number in range(100_000):
            archive.writestr(f"{number}", "")
    begun = time.monotonic()
    (issue,) = refused(target.getvalue()).issues
    assert time.monotonic() - begun < 2
    assert issue.rule == "Z-006"
    assert "100,000 entries" in issue.message


def test_entries_are_counted_even_where_the_zip_says_there_are_few() -> None:
    many = bytearray(zipped({f"{number}": "" for number in range(25_000)}))
    end = many.rfind(b"PK\x05\x06")
    struct.pack_into("<HH", many, end + 8, 1, 1)
    assert codes(bytes(many)) == ["Z-006"]


def test_a_thousand_files_are_taken_and_one_more_is_refused() -> None:
    files = {**TOOL, **{f"data/{number}": "" for number in range(998)}}
    read_archive(zipped(files))
    (issue,) = refused(zipped({**files, "more": ""})).issues
    assert issue.rule == "Z-006"
    assert "1,001 files" in issue.message


def test_an_upload_that_is_too_large_is_refused_before_it_is_looked_at() -> None:
    assert codes(bytes(10_000_001)) == ["Z-007"]


def test_a_file_and_a_package_that_are_too_large_are_refused() -> None:
    noise = os.urandom(500_000) * 20  # deflated not at all: it repeats too far away
    assert codes(write_archive({"tool.py": b"", "big": bytes(10_000_001)})) == ["Z-007"]
    files = {f"{number}": noise[:8_000_000] for number in range(4)}
    with pytest.raises(PackageError, match="Z-007: The files have more than 30 MB"):
        zip_files.read_files(write_archive(files))


def peak(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bomb(size: int) -> bytes:
    target = io.BytesIO()
    with (
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("zeros", "w") as file,
    ):
        for _ in range(size // 1_000_000):
            file.write(bytes(1_000_000))
    return target.getvalue()


def lying(data: bytes, size: int) -> bytes:
    """The same ZIP, which says of its first file that it is small."""
    changed = bytearray(data)
    struct.pack_into("<L", changed, data.rfind(b"PK\x01\x02") + 24, size)
    return bytes(changed)


def test_a_bomb_is_refused_without_being_inflated() -> None:
    data = bomb(200_000_000)
    assert len(data) < 250_000
    assert peak(lambda: refused(data)) < 2_000_000
    assert set(codes(data)) == {"Z-007", "Z-008"}
    assert codes(bomb(3_000_000)) == ["Z-008"]


@pytest.mark.parametrize("said", [10, 900_000])
def test_a_bomb_that_says_it_is_small_is_not_inflated_beyond_that(said: int) -> None:
    data = lying(bomb(200_000_000), said)
    assert peak(lambda: refused(data)) < 5_000_000
    assert codes(data) == ["Z-001"]  # it is not what it says


def test_entries_that_share_one_body_are_bounded_by_their_sum() -> None:
    body = zlib.compress(os.urandom(1000) * 100 + bytes(90_000), 9)[2:-4]  # raw deflate
    content = zlib.decompress(body, -15)
    names = [f"{number:04}".encode() for number in range(900)]
    common = struct.pack("<HHHHHLL", 20, 0, 8, 0, 33, zlib.crc32(content), len(body)) + struct.pack(
        "<LH", len(content), 4
    )
    local = b"PK\x03\x04" + common + struct.pack("<H", 0)
    central = b"".join(
        b"PK\x01\x02"
        + struct.pack("<H", 20)
        + common
        + struct.pack("<HHHHLL", 0, 0, 0, 0, 0, 0)
        + name
        for name in names
    )
    data = local + names[0] + body + central
    data += struct.pack(
        "<4sHHHHLLH", b"PK\x05\x06", 0, 0, 900, 900, len(central), len(local) + 4 + len(body), 0
    )
    assert peak(lambda: refused(data)) < 5_000_000


def test_much_repetition_in_a_small_file_is_no_bomb() -> None:
    (package,) = read_archive(zipped({**TOOL, "zeros": bytes(999_999)})).packages
    assert len(package.files["zeros"]) == 999_999


# Directories


def write(directory: Path, files: dict[str, bytes]) -> Path:
    for path, content in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)
    return directory


def test_a_directory_is_read_as_its_zip_would_be(tmp_path: Path) -> None:
    files = {**TOOL, "data/a.json": b"{}"}
    place = write(
        tmp_path / "case_desk_a1b2c3", {**files, ".venv/x": b"", "__pycache__/y.pyc": b""}
    )
    (place / ".venv/python").symlink_to("/usr/bin/python3")
    assert read_directory(place) == Package("case desk", files)


def test_links_and_special_files_in_a_directory_are_refused_and_not_followed(
    tmp_path: Path,
) -> None:
    place = write(tmp_path / "t", TOOL)
    (place / "etc").symlink_to("/etc")
    (place / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(place / "pipe")  # reading it would wait for ever
    with pytest.raises(PackageError) as caught:
        read_directory(place)
    assert [(issue.rule, issue.path) for issue in caught.value.issues] == [
        ("Z-005", "etc"),
        ("Z-005", "passwd"),
        ("Z-005", "pipe"),
    ]


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "gone", write(tmp_path, TOOL) / "tool.py"):
        with pytest.raises(PackageError, match="T-001"):
            read_directory(path)


def test_a_directory_with_names_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {**TOOL, "a\nb": b"", "a\\b": b""})
    (tmp_path / os.fsdecode(b"\xff.txt")).touch()
    with pytest.raises(PackageError) as caught:
        read_directory(tmp_path)
    assert sorted(issue.rule for issue in caught.value.issues) == ["Z-004", "Z-011", "Z-011"]


def test_a_file_of_a_directory_that_is_too_large_is_refused(tmp_path: Path) -> None:
    write(tmp_path, TOOL)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10_000_000_000)
    with pytest.raises(PackageError, match="Z-007"):
        read_directory(tmp_path)


# Writing


def test_the_same_files_are_written_as_the_same_bytes_without_what_is_left_out() -> None:
    files = {**TOOL, "b": b"2"}
    turned = dict(reversed(files.items()))
    assert write_archive(files) == write_archive({**turned, ".venv/x": b"", "a.pyc": b""})


def test_what_was_written_is_unpacked_as_plain_files_into_an_empty_directory(
    tmp_path: Path,
) -> None:
    files = {**TOOL, "data/deep/a.bin": bytes(3_000_000)}  # a bomb, had it been packed by others
    target = tmp_path / "new" / "place"
    unpack(write_archive(files), target)
    found = {
        each.relative_to(target).as_posix(): each.read_bytes()
        for each in target.rglob("*")
        if each.is_file()
    }
    assert found == files
    with pytest.raises(FileExistsError):
        unpack(write_archive(files), target)


def test_what_others_wrote_does_not_leave_the_directory(tmp_path: Path) -> None:
    with pytest.raises(PackageError):
        unpack(zipped({"../outside": "x", "tool.py": ""}), tmp_path / "in")
    assert list(tmp_path.rglob("*")) == []


def test_the_starter_is_a_template() -> None:
    (package,) = read_archive(starter(), filename="starter.zip").packages
    assert {"tool.py", "requirements.txt", "README.md", "data/branches.json"} == set(package.files)
    assert starter() == starter()


# Names


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("json_reader_abc123", "json reader"), ("my_api_tool_xk9f2m", "my api tool"),
        ("calculator_def456", "calculator"), ("weather_report", "weather report"), ("My-Tool", "My Tool"),
        ("a_1234567", "a 1234567"), ("a_abc12\n", "a abc12"), ("abc123", "abc123"), ("", ""),
    ],
)  # fmt: skip
def test_the_name_of_a_directory(directory: str, name: str) -> None:
    assert name_of_directory(directory) == name


def test_a_slug_is_read_as_its_name_again_and_never_the_same() -> None:
    slugs = {new_slug("Json Reader 2") for _ in range(500)}
    assert len(slugs) == 500
    assert {name_of_directory(slug) for slug in slugs} == {"json reader 2"}


# Anything


def read_or_refused(data: bytes) -> object:
    try:
        return read_archive(data).packages
    except PackageError as error:
        return error.issues


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for each in (data, zipped(TOOL) + data, data + zipped(TOOL)):
        assert read_or_refused(each)


_GOOD = write_workflow("W", {"a_abc123": Package("A", {**TOOL, "données/é.txt": b"x" * 300})})


@settings(max_examples=600, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, len(_GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=12
    ),
    st.integers(0, 40),
)
def test_any_change_to_a_zip_leaves_it_read_or_refused(
    changes: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(_GOOD)
    for place, byte in changes:
        data[place] = byte
    assert read_or_refused(bytes(data[: len(data) - cut]))


_NAME = st.text(
    st.characters(categories=["Ll", "Nd", "Pd"], max_codepoint=0x24F), min_size=1, max_size=12
).filter(lambda name: name.isprintable() and len(name.casefold()) == len(name))


@st.composite
def _packages(draw: st.DrawFn) -> dict[str, bytes]:
    folders = draw(st.lists(_NAME, max_size=3, unique_by=str.casefold))
    names = draw(st.lists(_NAME, min_size=1, max_size=8, unique_by=str.casefold))
    files = {**TOOL}
    for number, name in enumerate(names):
        path = "/".join([*(f"d{each}" for each in folders[: number % 4]), f"f{name}"])
        files[path] = draw(st.binary(max_size=200))
    return files


@settings(max_examples=150, deadline=None)
@given(_packages())
def test_what_is_written_is_read_back_the_same(files: dict[str, bytes]) -> None:
    (package,) = read_archive(write_archive(files)).packages
    assert package.files == files

"""What paths, folders and globs stand for: distinct real files, the same for every engine."""

import os
from pathlib import Path

import pytest

from fpinq.engines.files import Files, Pin, is_files, resolve
from fpinq.model.errors import BadData


def put(path: Path, text: str = "a\n1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def named(files: Files) -> list[str]:
    return [os.path.basename(path) for path in files.paths]


def test_a_file_counts_once_whatever_leads_to_it(tmp_path: Path) -> None:
    file = put(tmp_path / "d" / "x.csv")
    (tmp_path / "link.csv").symlink_to(file)
    (tmp_path / "again").symlink_to(tmp_path / "d")
    os.link(file, tmp_path / "d" / "y.csv")
    (tmp_path / "d" / "round").symlink_to(tmp_path / "d")
    every = [
        file,
        tmp_path / "link.csv",
        tmp_path / "again",
        tmp_path,
        f"{tmp_path}/**",
        tmp_path / "d/y.csv",
    ]
    assert resolve(every).paths == (str(file),)
    assert [resolve(one).pins[0].inode for one in every] == [os.stat(file).st_ino] * len(every)


def test_the_list_does_not_depend_on_how_it_was_asked_for(tmp_path: Path) -> None:
    for name in ("b/2.csv", "a/1.csv", "c.csv"):
        put(tmp_path / name)
    by_folder = resolve(tmp_path)
    assert named(by_folder) == ["1.csv", "2.csv", "c.csv"]
    assert resolve(f"{tmp_path}/**/*.csv") == by_folder == resolve(f"{tmp_path}/*")
    assert resolve([tmp_path / "c.csv", tmp_path / "b", tmp_path / "a"]) == by_folder == resolve(by_folder)


STRANGE = ["x[1].csv", "x?.csv", "*.csv", "**.csv", "a=b.csv", "'\".csv", "s3:x.csv", "a,b;.csv"]


@pytest.mark.parametrize("name", STRANGE)
def test_a_file_that_is_named_is_that_file_and_no_glob(tmp_path: Path, name: str) -> None:
    put(tmp_path / "x1.csv")
    put(tmp_path / "xy.csv")
    assert named(resolve(put(tmp_path / name))) == [name]


def test_markers_and_hidden_files_are_no_data_unless_they_are_named(tmp_path: Path) -> None:
    for name in ("_SUCCESS", ".part.csv.crc", "_temporary/0/x.csv", ".hidden/x.csv"):
        put(tmp_path / name)
    put(tmp_path / "part.csv")
    put(tmp_path / "none.csv", "")
    for source in (tmp_path, f"{tmp_path}/*", f"{tmp_path}/**"):
        assert named(resolve(source)) == ["part.csv"]
    assert named(resolve(put(tmp_path / "_x.csv"))) == ["_x.csv"] == named(resolve(f"{tmp_path}/_x*"))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("nowhere.csv", "no such file"),
        ("nowhere/*", "no such file"),
        ("none.csv", "is empty"),
        ("none*", "are empty"),
        (["a.csv", "b.parquet"], "one format"),
        ("c.xlsx", "neither"),
        ("a\0.csv", "NUL"),
    ],
)
def test_what_is_no_table_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.parquet", "c.xlsx"):
        put(tmp_path / name)
    put(tmp_path / "none.csv", "")
    with pytest.raises(BadData, match=says):
        resolve(source)


def test_a_name_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    Path(name).write_text("a\n1\n")
    for source in (name, tmp_path):
        with pytest.raises(BadData, match="Unicode"):
            resolve(source)


def test_a_file_rewritten_in_place_with_its_old_time_does_not_hold(tmp_path: Path) -> None:
    file = put(tmp_path / "x.csv", "a\n1\n")
    pin, before = Pin.of(str(file)), file.stat()
    assert pin.holds()
    with file.open("r+") as open_file:
        open_file.write("a\n2\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert not pin.holds()


def test_paths_are_files_and_rows_are_not() -> None:
    assert all(map(is_files, ["x", Path("x"), ["x", Path("y")], Files((), "csv")]))
    assert not any(map(is_files, [[], [{"a": 1}], ["x", {}], 5]))

import json
import os
import stat
from pathlib import Path

import pytest

from kerntest.errors import DataError
from kerntest.report import write
from kerntest.report.write import encoded, json_text, write_file, written_together


def leftovers(folder):
    return sorted(file.name for file in folder.iterdir() if file.name.startswith(".kerntest"))


def test_json_is_strict_and_ends_in_a_newline():
    text = json_text({"p_value": 0.1, "name": "größe"})
    assert text == '{\n  "p_value": 0.1,\n  "name": "größe"\n}\n'
    with pytest.raises(ValueError, match="JSON compliant"):
        json_text({"p_value": float("nan")})


def test_a_name_that_is_no_unicode_survives_json():
    name = os.fsdecode(b"caf\xe9.csv")
    content = encoded(json_text({"name": name}))
    assert json.loads(content)["name"] == name


@pytest.mark.parametrize("failing", ["os.fsync", "pathlib.Path.replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failing, error):
    target = tmp_path / "result.json"
    target.write_text("old")

    def fail(*arguments):
        del arguments
        raise error

    monkeypatch.setattr(failing, fail)
    if isinstance(error, OSError):
        with pytest.raises(DataError, match=r"cannot write .*result\.json: no space left on device") as caught:
            write_file(target, "new")
        assert caught.value.exit_code == 3
        assert caught.value.code == "data.output"
    else:
        with pytest.raises(KeyboardInterrupt):
            write_file(target, "new")
    assert target.read_text() == "old"
    assert leftovers(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="modes and umask are POSIX")
def test_modes_a_new_file_obeys_the_umask_and_an_old_one_keeps_its_own(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        write_file(old, "x")
        write_file(new, "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    old.chmod(0o604)
    write_file(old, "y")
    assert stat.S_IMODE(old.stat().st_mode) == 0o604


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_a_link_is_followed_and_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.skipif(os.name != "posix", reason="/dev/null is POSIX")
def test_a_device_is_written_and_not_replaced():
    write_file("/dev/null", "text")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_place_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(write.os, "access", lambda *_: False)
    with pytest.raises(DataError, match="permission denied"):
        write_file(tmp_path / "result.json", "x")
    assert list(tmp_path.iterdir()) == []


def test_of_files_written_together_none_is_there_if_one_is_not_new(tmp_path):
    def write_both():
        with written_together():
            write_file(tmp_path / "p.png", b"picture")
            write_file(tmp_path / "m.kt", b"ours", new=True)
            (tmp_path / "m.kt").write_bytes(b"theirs")

    with pytest.raises(DataError, match=r"m\.kt exists already"):
        write_both()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"m.kt": b"theirs"}

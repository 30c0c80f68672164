"""Take screenshots of a widget on the test page.

    python ui-tests/shoot.py lab.png
    python ui-tests/shoot.py --width 800 --width 1600 --theme light --theme dark lab.png
    python ui-tests/shoot.py --code "..." --do "page.get_by_role('tab', name='Sweep').click()" sweep.png

`--code` is the cell that shows the widget (by default a Lab on the embedded model), `--do` a line of Python on
Playwright's `page` (and `notebook`), run before the picture is taken; give it several times for several lines. With
more than one width or theme the file names get them as a suffix. What the page reports as errors is printed, and
makes the command fail.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from page_harness import Notebook, Server, chromium

LAB = """
from nnsight_lab import Lab, demo
lab = Lab(demo.load(), demo.EIFFEL, source=demo.BRANDENBURG)
lab
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--code", default=LAB)
    parser.add_argument("--do", action="append", default=[], metavar="LINE")
    parser.add_argument("--width", action="append", type=int)
    parser.add_argument("--theme", action="append", choices=["light", "dark"])
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--settle", type=float, default=0.5, help="seconds to wait before the picture (0.5)")
    options = parser.parse_args()
    looks = [(width, theme) for width in options.width or [1240] for theme in options.theme or ["light"]]
    errors: list[str] = []
    with Server.started() as server, chromium() as browser:
        kernel = server.start_kernel()
        for width, theme in looks:
            notebook = Notebook.opened(browser, server, kernel, width=width, height=options.height, theme=theme)
            notebook.run(options.code)
            for line in options.do:
                exec(line, {"page": notebook.page, "notebook": notebook})
            notebook.page.wait_for_timeout(options.settle * 1000)
            out: Path = options.out
            if len(looks) > 1:
                out = out.with_stem(f"{out.stem}-{width}-{theme}")
            notebook.page.screenshot(path=out, full_page=True)
            print(out)
            errors += notebook.errors
            notebook.close()
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    # Ended from outside, it still stops its server.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())

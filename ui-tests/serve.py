"""Open the test page by hand: `python ui-tests/serve.py [CODE]` prints its address and serves it until Ctrl-C.

CODE is a cell to begin with, by default a Lab on the embedded model. In the browser's console
`harness.execute(...)` runs further cells.
"""

from __future__ import annotations

import signal
import sys
import time

from page_harness import Server, chromium
from page_harness.notebook import Notebook
from shoot import LAB


def main() -> None:
    code = sys.argv[1] if len(sys.argv) > 1 else LAB
    with Server.started() as server:
        kernel = server.start_kernel()
        # Widgets live in the kernel: made from one page, they are shown by every page that connects.
        with chromium() as browser:
            maker = Notebook.opened(browser, server, kernel)
            widgets = maker.run(code).shown
            maker.close()
        for theme in ("light", "dark"):
            print(f"{theme}: {server.page_address(kernel, theme)}&show={','.join(widgets)}")
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    # Ended from outside, it still stops its server.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()

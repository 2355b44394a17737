"""A real Chromium, driven by its own protocol over a WebSocket; no driver and no library between.

Source: Chrome DevTools Protocol, https://chromedevtools.github.io/devtools-protocol/
"""

import asyncio
import base64
import itertools
import json
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
)
START_S, ANSWER_S = 60, 60  # guess: on a machine that is slow and busy


def find_chromium() -> str | None:
    """The program, where the system has it."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Tab:
    """One tab; what its console and its policy complained of is in ``complaints``."""

    socket: aiohttp.ClientWebSocketResponse
    session: str = ""
    complaints: list[str] = field(default_factory=list)
    _ids: Any = field(default_factory=lambda: itertools.count(1))
    _waiting: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    _loaded: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self) -> None:
        async for message in self.socket:
            stated = json.loads(message.data)
            if stated.get("id") in self._waiting:
                self._waiting.pop(stated["id"]).set_result(stated)
            match stated.get("method"):
                case "Page.loadEventFired":
                    self._loaded.set()
                case "Log.entryAdded":
                    self.complaints.append(stated["params"]["entry"]["text"])
                case "Runtime.exceptionThrown":
                    self.complaints.append(str(stated["params"]["exceptionDetails"]))
                case "Page.javascriptDialogOpening":
                    self.complaints.append(f"dialog: {stated['params']['message']}")

    async def call(self, method: str, **parameters: Any) -> Any:
        """Ask the browser something."""
        number = next(self._ids)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        asked = {"id": number, "method": method, "params": parameters}
        await self.socket.send_json(asked | ({"sessionId": self.session} if self.session else {}))
        async with asyncio.timeout(ANSWER_S):
            stated = await answer
        assert "error" not in stated, (method, stated)
        return stated["result"]

    async def go(self, url: str) -> None:
        """Open an address and wait until it is loaded."""
        self._loaded.clear()
        await self.call("Page.navigate", url=url)
        await self.wait_loaded()

    async def wait_loaded(self) -> None:
        async with asyncio.timeout(ANSWER_S):
            await self._loaded.wait()

    async def do(self, script: str) -> Any:
        """Run a line of script in the page, and give what it is."""
        stated = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in stated, stated
        return stated["result"].get("value")

    async def leave_by(self, script: str) -> None:
        """Do what loads another page, and wait for that."""
        self._loaded.clear()
        await self.do(script)
        await self.wait_loaded()

    async def leave_by_key(self, key: str, code: int) -> None:
        """Press a key that loads another page, and wait for that."""
        self._loaded.clear()
        await self.press(key, code, text="\r" if key == "Enter" else "")
        await self.wait_loaded()

    async def press(self, key: str, code: int, **more: Any) -> None:
        """Press a key."""
        down = "keyDown" if more.get("text") else "rawKeyDown"
        for kind in (down, "keyUp"):
            typed = more if kind == down and more.get("text") else {}
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **typed)

    async def resize(self, width: int, height: int) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    async def prefer(self, scheme: str) -> None:
        """Say that the user prefers ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def set_script(self, *, runs: bool) -> None:
        await self.call("Emulation.setScriptExecutionDisabled", value=not runs)

    async def save_picture(self, path: Path, *, whole: bool = True) -> None:
        shot = await self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        await asyncio.to_thread(path.write_bytes, base64.b64decode(shot["data"]))


@asynccontextmanager
async def open_tab(program: str, folder: Path) -> AsyncIterator[Tab]:
    """Start a browser with a profile of its own, and open a tab in it."""
    profile = folder / "profile"
    process = await asyncio.create_subprocess_exec(
        program,
        *FLAGS,
        f"--user-data-dir={profile}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with aiohttp.ClientSession() as http:
            address = await _find_address(profile / "DevToolsActivePort", process)
            async with http.ws_connect(address, max_msg_size=0) as socket:
                tab = Tab(socket)
                listening = asyncio.create_task(tab.listen())
                target = await tab.call("Target.createTarget", url="about:blank")
                attached = await tab.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
                tab.session = attached["sessionId"]
                for domain in ("Page", "Log", "Runtime"):
                    await tab.call(f"{domain}.enable")
                yield tab
                listening.cancel()
                with suppress(asyncio.CancelledError):
                    await listening
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _find_address(port_file: Path, process: asyncio.subprocess.Process) -> str:
    async with asyncio.timeout(START_S):
        while True:
            assert process.returncode is None, f"the browser ended with {process.returncode}"
            with suppress(FileNotFoundError):
                lines = (await asyncio.to_thread(port_file.read_text)).splitlines()
                if len(lines) == 2:
                    return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            await asyncio.sleep(0.05)
